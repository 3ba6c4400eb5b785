"""Writes rendered.json: templates and what Jinja2 makes of them.

    python generate.py      needs jinja2; the version is recorded in the file

Undefined names are errors here (StrictUndefined), as in package jinja. A
rendering that fails is recorded as null.
"""
import json
import random

import jinja2
from jinja2.sandbox import SandboxedEnvironment

ENV = SandboxedEnvironment(undefined=jinja2.StrictUndefined)
FUNC = "{{c}}-{{d}}"
CONST = {"u": "http://s/p", "w": " Ab\u00e9 ", "n7": 7, "x": 2.5, "t": True, "z": None, "l": [3, "a", 1.5]}
VARS = {"i": 5, "j": -3, "s": "q7"}

HAND = r"""
plain
{{u}}
{{ u }}/y
{{u}}{{u}}
{{f(c='text', d=1)}}
{{f(d=i, c=u ~ 'x')}}
{{f(c=1,d=2,e=3)}}
{{i + 1}} {{(i + 1) * 1000}} {{ 16 + i * 48 }} {{ i - -j }} {{-i}} {{+i}} {{ - - i }}
{{ i / 2 }} {{ i // 2 }} {{ j // 2 }} {{ j % 2 }} {{ i % j }} {{ j % i }} {{ 6 / 3 }} {{ 1e3 }} {{ 7 // 2.0 }} {{ 9007199254740993 / 3 }} {{ -7 % 2.5 }}
{{ 2 ** 3 }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ 2 ** -1 }} {{ 10 ** 18 }} {{ 10 ** -3 }} {{ (-2) ** 63 }} {{ (-1) ** 5 }} {{ 0 ** 0 }}
{{ 9 ** 9 }} {{ 1_000 }} {{ 0x1F }} {{ 0o17 }} {{ 0b101 }} {{ 00 }} {{ 1.5e-3 }} {{ 1_0.2_5 }} {{ 5e2 }}
{{ 08 }}
{{ 1e16 }} {{ 1e15 }} {{ 1e-4 }} {{ 1e-5 }} {{ 0.1 + 0.2 }} {{ 3.0 }} {{ 1e400 }} {{ -1e400 }} {{ 1e22 }}
{{ '%05d' % i }} {{ '%03d' % j }} {{ '%+d' % i }} {{ '%-5d|' % i }} {{ '% d' % i }} {{ '%x' % 255 }} {{ '%#X' % 255 }} {{ '%o' % 8 }} {{ '%#o' % 8 }}
{{ '%s_%d' % (u, i) }} {{ '%s' % 1.5 }} {{ '%r' % 'a' }} {{ '%.2f' % 3.14159 }} {{ '%8.3f|' % 3.14159 }} {{ '%08.3f' % -3.14159 }} {{ '%e' % 12345.678 }} {{ '%g' % 1e-5 }} {{ '%g' % 123456789 }} {{ '%g' % 100000 }}
{{ '%d%%' % i }} {{ '%5s|%-5s|' % ('a', 'b') }} {{ '%.2s' % 'abc' }} {{ '%c%c' % (65, 'B') }} {{ '%.3d' % 7 }} {{ '%05.1f' % 2.25 }} {{ '%i' % 3.9 }} {{ '%s' % [1, 'a'] }} {{ '%s' % none }}
{{ '%d' % 'a' }}
{{ '%d %d' % 1 }}
{{ '%d' % (1, 2) }}
{{ 'no' % 1 }}
{{ '%' % 1 }}
{{ '%q' % 1 }}
{{ '%02d' | format(i) }} {{ '%s-%s' | format('a', j) }} {{ i | string + 'x' }} {{ '12' | int + 1 }} {{ 'x' | int }} {{ 'x' | int(3) }} {{ '42.9' | int }} {{ ' 7 ' | int }} {{ '1_0' | int }} {{ 3.9 | int }} {{ -3.9 | int }} {{ 'ff' | int(0, 16) }} {{ '0x1f' | int(base=16) }} {{ none | int }}
{{ '1.5' | float }} {{ 2 | float }} {{ 'a' | float(9) }} {{ u | upper }} {{ 'AB' | lower }} {{ w | trim }}| {{ 'xxaxx' | trim('x') }} {{ u | replace('http', 'https') }} {{ 'aaa' | replace('a', 'b', 2) }} {{ 'abc' | length }} {{ l | count }} {{ 'abc' | first }}{{ 'abc' | last }} {{ l | first }} {{ -5 | abs }} {{ (-5) | abs }} {{ -2.5 | abs }}
{{ 2.5 | round }} {{ 3.5 | round }} {{ 2.675 | round(2) }} {{ 5 | round }} {{ 2.1 | round(0, 'ceil') }} {{ 2.9 | round(method='floor') }} {{ 42.55 | round(1, 'floor') }} {{ 2.5 | round | int }}
{{ '{:03d}'.format(i) }} {{ '{}-{}'.format(1, 'a') }} {{ '{1}{0}'.format('a', 'b') }} {{ '{a}{b:>5}'.format(a=1, b='x') }} {{ '{{}}'.format() }} {{ '{:<4}|{:^5}|{:*>6}'.format('a', 'b', 3) }} {{ '{:+}'.format(3) }} {{ '{:x}'.format(255) }} {{ '{:#b}'.format(5) }} {{ '{:,}'.format(1234567) }} {{ '{:_}'.format(1234567) }} {{ '{:.2f}'.format(2.345) }} {{ '{:e}'.format(1.5) }} {{ '{:g}'.format(0.0001) }} {{ '{:%}'.format(0.25) }} {{ '{:8.2f}|'.format(3.14159) }} {{ '{:08.2f}'.format(-3.14159) }} {{ '{:.3}'.format(3.14159) }} {{ '{:.3}'.format('abcdef') }} {{ '{:5}|'.format('ab') }} {{ '{:05}'.format(42) }} {{ '{:.1}'.format(3.0) }} {{ '{:.10}'.format(3.0) }}
{{ '{:d}'.format('a') }}
{{ '{0}{}'.format(1, 2) }}
{{ '{}'.format() }}
{{ '{'.format() }}
{{ 'abc'.zfill(5) }} {{ '-3'.zfill(4) }} {{ '+3'.zfill(4) }} {{ (i | string).zfill(3) }}
{{ 'a' ~ 1 ~ 2.5 ~ none ~ true }} {{ 'a' + 'b' }} {{ 'ab' * 3 }} {{ 2 * 'ab' }} {{ 'ab' * -1 }}
{{ 1 ~ 2 * 3 }} {{ 1 + 2 ~ 3 }} {{ 1 ~ 2 + 3 }}
{{ 'a' + 1 }}
{{ 1 + 2 * 3 - 4 // 2 }} {{ (1 + 2) * 3 }} {{ 7 - 2 - 1 }} {{ 100 // 7 % 5 }}
{{ 'a' 'b' "c" }} {{ "it's" }} {{ 'say "hi"' }} {{ 'a\'b' }} {{ 'a\nb' }} {{ 'a\\b' }} {{ '\x41\u00e9\101' }} {{ 'a\qb' }}
{{ i == 5 }} {{ i != 5 }} {{ i < 6 }} {{ i >= 6 }} {{ 1 < i < 10 }} {{ 1 < i > 10 }} {{ 'a' < 'b' }} {{ i in [1, 5] }} {{ i not in (1, 5) }} {{ 'a' in 'abc' }} {{ 1 == 1.0 }} {{ true == 1 }} {{ '1' == 1 }} {{ none == none }} {{ (1, 2) < (1, 3) }} {{ [1] == [1.0] }}
{{ 'a' < 1 }}
{{ not i }} {{ not 0 }} {{ i and j }} {{ 0 or 'x' }} {{ '' or none }} {{ 1 and 0 or 3 }} {{ not 1 == 2 }} {{ true + 1 }} {{ -true }} {{ true }} {{ none }}
{{ 'a' if i > 3 else 'b' }} {{ 'a' if i > 9 else 'b' if j else 'c' }} {{ 1/0 if false else 2 }} {{ (1 if true else 2) + 1 }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 1.0 / 0 }}
{{ 0 ** -1 }}
{{ l[0] }} {{ l[-1] }} {{ l[1] }} {{ 'abc'[1] }} {{ 'h\u00e9llo'[1] }} {{ 'abc'[-1] }} {{ 'abcdef'[1:3] }} {{ 'abcdef'[:2] }} {{ 'abcdef'[2:] }} {{ 'abcdef'[-2:] }} {{ 'abcdef'[:-2] }} {{ 'abc'[:] }} {{ 'abc'[5:] }} {{ [1, 2, 3][1:] }} {{ l }} {{ (1,) }} {{ (1, 'a', none) }} {{ () }} {{ [] }} {{ 1, 2 }} {{ ['it\'s', "q"] }} {{ (1) }}
{{ l[9] }}
{{ 'abc'[7] }}
{{ 5[0] }}
{% if i > 3 %}yes{% endif %} {% if i > 9 %}a{% elif j %}b{% else %}c{% endif %} {% if 0 %}a{% else %}{% if 1 %}n{% endif %}{% endif %}
{% if i %}{{ i }}{% else %}{{ nope }}{% endif %}
{% if 'a' in u or i == 5 and not j %}x{% endif %}
a {{- i -}} b {{ i }} c {%- if 1 -%} d {%- endif -%} e
a {#- comment {{ i }} -#} b{# c #}d
{% raw %}{{ u }} {% if %}{% endraw %}
 {%- raw -%} {{ u }} {%- endraw -%} x
{{ '}}' }} {{ '{{' }} {{ "%}" }} {{ [[1, 2][0]][0] }}
{{-1}} {{+1}} {{ -1 }}
{ { u } } {% raw %}{{{% endraw %} }} %} #} { {}
{{ {'a': 1} }}
{{ u.__class__ }}
{{ u.upper() }}
{{ range(3) }}
{{ nope }}
{{ i is odd }}
{{ f }}
{{ f('a') }}
{{ i(1) }}
{{ u | nofilter }}
{{ }}
{{ i i }}
{{ (i }}
{{ i) }}
{{ 'a }}
{{u
{{ 1 +
{% if i %}x
{% endif %}
{% else %}
{% nope %}
{% for a in [1] %}{% endfor %}
{% set a = 1 %}
{# x
{{ i ! }}
{{ [1, 2,] }} {{ [,] }}
{{ 'a' if i }}
{{ "%s" % w | trim }}
{{ w | trim | upper | length }}
{{ -i | abs }} {{ -i|string|length }}
{{ i.real }}
{{ 9223372036854775807 }} {{ -9223372036854775807 - 1 }}
"""

OPS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "and", "or", "in", "not in"]
LEAVES = ["i", "j", "s", "u", "n7", "x", "t", "z", "l", "0", "1", "2", "3", "10", "-1", "2.5", "0.1", "'a'", "'7'", "'%d'", "'%05d'", "'%s'", "'%x'",
          "'%.3f'", "'%g'", "'%-6s|'", "'%+d'", "''", "true", "none", "[1, 2]", "(1, 'a')"]
FILTERS = ["abs", "int", "float", "string", "length", "lower", "upper", "trim", "round", "round(1)", "first", "last", "format(3)", "format(i)",
           "int(4)", "replace('a', 'bc')", "round(0, 'floor')"]


def expr(r, depth):
    pick = r.random()
    if depth == 0 or pick < 0.15:
        return r.choice(LEAVES)
    if pick < 0.55:
        return f"{expr(r, depth - 1)} {r.choice(OPS)} {expr(r, depth - 1)}"
    if pick < 0.65:
        return f"({expr(r, depth - 1)})"
    if pick < 0.80:
        return f"{expr(r, depth - 1)} | {r.choice(FILTERS)}"
    if pick < 0.86:
        return f"{expr(r, depth - 1)} if {expr(r, depth - 1)} else {expr(r, depth - 1)}"
    if pick < 0.90:
        return f"({expr(r, depth - 1)})[{r.choice(['0', '-1', '1', ':1', '1:', 'i'])}]"
    if pick < 0.94:
        spec = r.choice(["", ":d", ":05d", ":>6", ":x", ":.2f", ":e", ":.3", ":+", ":^7", ":*<5", ":s", ":,", ":g", ":010.3f"])
        return f"'{{{spec}}}'.format({expr(r, depth - 1)})"
    if pick < 0.97:
        return f"-{expr(r, depth - 1)}"
    return f"not {expr(r, depth - 1)}"



def render(source):
    f = lambda **kw: ENV.from_string(FUNC).render(**kw)
    try:
        return ENV.from_string(source).render(f=f, **CONST, **VARS)
    except Exception:
        return None


def main():
    hand = [{"template": t, "text": render(t)} for t in HAND.strip("\n").split("\n")]
    for extra in ["a\n", "a\n\n", "a\r\nb\rc\n", "{{ u }}\n", "x \n {%- if 1 %} \n y{% endif +%} \n", "{{ 'a\nb' }}", ""]:
        hand.append({"template": extra, "text": render(extra)})
    r = random.Random(3)
    found = []
    while len(found) < 3000:
        t = "{{ " + expr(r, r.choice([1, 2, 2, 3])) + " }}"
        v = render(t)
        if v is None and r.random() < 0.8:
            continue
        if len(t) > 90 or v is not None and (len(v) > 200 or "function" in v or "<" in v):
            continue
        found.append({"template": t, "text": v})
    out = {"writer": f"jinja2 {jinja2.__version__}, SandboxedEnvironment", "function": {"f": FUNC}, "constants": CONST, "variables": VARS,
           "hand": hand, "random": found}
    with open("rendered.json", "w") as fo:
        lines = json.dumps({k: v for k, v in out.items() if k not in ("hand", "random")}, ensure_ascii=False)[:-1]
        for part in ("hand", "random"):
            lines += f',\n"{part}": [\n' + ",\n".join(json.dumps(x, ensure_ascii=False) for x in out[part]) + "\n]"
        fo.write(lines + "}\n")


main()
