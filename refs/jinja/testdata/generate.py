"""Writes rendered.json: templates and what Jinja2 makes of them.

    python generate.py      needs jinja2; the version is recorded in the file

"hand" and "used" are in the language of package jinja, "used" at random;
"refused" is beyond it, and "random" may be either.

Undefined names are errors here (StrictUndefined), as in package jinja. A
rendering that fails is recorded as null.
"""
import json
import random
import re

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
{{i + 1}} {{(i + 1) * 1000}} {{ 16 + i * 48 }} {{ i - -j }} {{ - - i }}
{{ i // 2 }} {{ j // 2 }} {{ j % 2 }} {{ i % j }} {{ j % i }}
{{ 08 }}
{{ '%05d' % i }} {{ '%03d' % j }} {{ '%5d|' % i }} {{ '%s' % i }} {{ '%5s|' % 'a' }} {{ '%d%%' % i }} {{ 'a%s%%d' % 'b' }}
{{ '%d' % 'a' }}
{{ '%d %d' % 1 }}
{{ 'no' % 1 }}
{{ '%' % 1 }}
{{ '%q' % 1 }}
{{ '%02d' | format(i) }} {{ '%s' | format('a') }} {{ u | upper }} {{ 'ab' | upper | upper }} {{ i | upper }}
{{ 1 ~ 2 * 3 }} {{ 'a' ~ 1 }} {{ (1 + 2) ~ 3 }} {{ s ~ '-' ~ i }}
{{ 1 + 2 ~ 3 }}
{{ 1 ~ 2 + 3 }}
{{ 'a' + 1 }}
{{ 1 + 2 * 3 - 4 // 2 }} {{ (1 + 2) * 3 }} {{ 7 - 2 - 1 }} {{ 100 // 7 % 5 }}
{{ 'a\'b' }} {{ 'a\nb' }} {{ 'a\\b' }} {{ -1 }} {{ "it's" }} {{ 'say "hi"' }} {{ '}}' }} {{ '{{' }} {{ "%}" }}
{{ 2 ** 3 }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ 10 ** 18 }} {{ (-2) ** 63 }} {{ (-1) ** 5 }} {{ 0 ** 0 }} {{ 9 ** 9 }}
{{ 'a' < 1 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ (1) }}
{{ 'abc'[7] }}
{{ 5[0] }}
{{ nope }}
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
{# x
{{ i ! }}
{{ [,] }}
{{ 9223372036854775807 }} {{ -9223372036854775807 - 1 }}
{% if i > 3 %}yes{% endif %} {% if i > 9 %}a{% endif %}{% if 0 %}a{% endif %}{% if 1 %}{% if j < 0 %}n{% endif %}{% endif %}
{% if i != 5 %}a{% endif %}{% if i >= 5 %}b{% endif %}{% if i <= 4 %}c{% endif %}{% if i == 5 %}d{% endif %}
"""

# What Jinja2 renders and package jinja refuses.
REFUSED = r"""
{{-i}}
{{ '%+d' % i }}
{{ '%-5d|' % i }}
{{ '% d' % i }}
{{ '%x' % 255 }}
{{ '%o' % 8 }}
{{ '%s_%d' % (u, i) }}
{{ '%s' % x }}
{{ '%.2f' % x }}
{{ '%8.3f|' % x }}
{{ '%08.3f' % x }}
{{ '%.1f' % 7 }}
{{ x }}
{{ '%5s|%-5s|' % ('a', 'b') }}
{{ '%.2s' % 'abc' }}
{{ '%05.1f' % x }}
{{ '%i' % 3 }}
{{ '%d' % (1, 2) }}
{{ '%s-%s' | format('a', j) }}
{{ i | string + 'x' }}
{{ '12' | int + 1 }}
{{ ' 7 ' | int }}
{{ i | int }}
{{ 'a' + 'b' }}
{{ 'AB' | lower }}
{{ 'a' if i > 3 else 'b' }}
{{ 'a' if i > 9 else 'b' if j else 'c' }}
{{ 1//0 if 0 else 2 }}
{{ (1 if 'x' else 2) + 1 }}
{{ l[9] }}
a {{- i -}} b {{ i }} c
{{-1}}
{% if i > 3 %}yes{% endif %} {% if i > 9 %}a{% else %}c{% endif %} {% if 0 %}a{% else %}{% if 1 %}n{% endif %}{% endif %}{% if s == 'q7' %}{{s}}{% endif %}
{% if i != 5 %}a{% endif %}{% if i >= 5 %}b{% endif %}{% if i <= 4 %}c{% endif %}{% if 'a' < u %}d{% endif %}{% if x %}e{% endif %}{% if '' %}f{% endif %}
b {%- if 1 -%} d {%- endif -%} e
{{ 'a' ~ 1 ~ x }}
{{ '%s' % (i,) }}
{{ '%-05d|%+05d|%05s' % (i, i, 'a') }}
{{+i}} {{ 7 // 2.0 }} {{ 9007199254740993 / 3 }} {{ -7 % 2.5 }} {{ 2 ** -1 }} {{ 10 ** -3 }} {{ 1_000 }} {{ 0x1F }} {{ 0o17 }} {{ 0b101 }}
{{ 00 }} {{ 1_0.2_5 }} {{ 1e400 }} {{ -1e400 }} {{ '%#X' % 255 }} {{ '%#o' % 8 }} {{ '%r' % 'a' }} {{ '%e' % 12345.678 }} {{ '%g' % 1e-5 }}
{{ '%g' % 123456789 }} {{ '%g' % 100000 }} {{ '%c%c' % (65, 'B') }} {{ '%.3d' % 7 }} {{ '%s' % [1, 'a'] }} {{ '%s' % none }} {{ 'x' | int }}
{{ 'x' | int(3) }} {{ '42.9' | int }} {{ '1_0' | int }} {{ 'ff' | int(0, 16) }} {{ '0x1f' | int(base=16) }} {{ none | int }}
{{ '1.5' | float }} {{ 2 | float }} {{ 'a' | float(9) }} {{ w | trim }}| {{ 'xxaxx' | trim('x') }} {{ 'aaa' | replace('a', 'b', 2) }}
{{ l | count }} {{ 'abc' | first }}{{ 'abc' | last }} {{ l | first }} {{ 2.675 | round(2) }} {{ 2.1 | round(0, 'ceil') }}
{{ 2.9 | round(method='floor') }} {{ 42.55 | round(1, 'floor') }} {{ '{a}{b:>5}'.format(a=1, b='x') }}
{{ '{:<4}|{:^5}|{:*>6}'.format('a', 'b', 3) }} {{ '{:+}'.format(3) }} {{ '{:#b}'.format(5) }} {{ '{:,}'.format(1234567) }}
{{ '{:_}'.format(1234567) }} {{ '{:e}'.format(1.5) }} {{ '{:g}'.format(0.0001) }} {{ '{:%}'.format(0.25) }} {{ '{:.3}'.format(3.14159) }}
{{ '{:.1}'.format(3.0) }} {{ '{:.10}'.format(3.0) }} {{ 'a' ~ 1 ~ 2.5 ~ none ~ true }} {{ 'ab' * 3 }} {{ 2 * 'ab' }} {{ 'ab' * -1 }}
{{ 'a' 'b' "c" }} {{ '\x41\u00e9\101' }} {{ 'a\qb' }} {{ 1 < i < 10 }} {{ 1 < i > 10 }} {{ i in [1, 5] }} {{ i not in (1, 5) }}
{{ 'a' in 'abc' }} {{ none == none }} {{ (1, 2) < (1, 3) }} {{ [1] == [1.0] }} {{ '' or none }} {{ none }} {{ l[0] }} {{ l[-1] }} {{ l[1] }}
{{ 'abc'[1] }} {{ 'h\u00e9llo'[1] }} {{ 'abc'[-1] }} {{ 'abcdef'[1:3] }} {{ 'abcdef'[:2] }} {{ 'abcdef'[2:] }} {{ 'abcdef'[-2:] }}
{{ 'abcdef'[:-2] }} {{ 'abc'[:] }} {{ 'abc'[5:] }} {{ [1, 2, 3][1:] }} {{ l }} {{ (1,) }} {{ (1, 'a', none) }} {{ () }} {{ [] }} {{ 1, 2 }}
{{ ['it\'s', "q"] }}
{% if i %}{{ i }}{% else %}{{ nope }}{% endif %}
{% if 'a' in u or i == 5 and not j %}x{% endif %}
{% raw %}{{ u }} {% if %}{% endraw %}
 {%- raw -%} {{ u }} {%- endraw -%} x
{{ [[1, 2][0]][0] }} {{+1}}
{ { u } } {% raw %}{{{% endraw %} }} %} #} { {}
{{ {'a': 1} }} {{ u.__class__ }} {{ u.upper() }} {{ range(3) }} {{ i is odd }}
{% for a in [1] %}{% endfor %}
{% set a = 1 %}
{{ [1, 2,] }} {{ w | trim | upper | length }} {{ i.real }}
{{ 'abc' | length }} {{ -5 | abs }} {{ (-5) | abs }} {{ -2.5 | abs }} {{ 2.5 | round }} {{ 3.5 | round }} {{ 5 | round }} {{ 2.5 | round | int }} {{ '{:.3}'.format('abcdef') }} {{ '{:5}|'.format('ab') }} {{ -i | abs }} {{ -i|string|length }} {{ -0.4 | round }} {{ -0.0 | abs }} {{ '{:<4}|{:>6}|{:<3}|{:X}'.format('a', 'b', 3, 255) }} {{ '{:.2}|{:6.1f}'.format('abc', 2) }}
{{ i / 2 }} {{ 6 / 3 }} {{ 1e3 }} {{ 1.5 }} {{ 0.1 + 0.2 }} {{ x * 2 }} {{ -x }} {{ '%d' % x }} {{ x | int }}
{{ u | replace('http', 'https') }} {{ w | trim }} {{ w | upper }} {{ '{:03d}'.format(i) }} {{ 'abc'.zfill(5) }}
{{ i == 5 }} {{ i != 5 }} {{ i < 6 }} {{ i >= 6 }} {{ not i }} {{ i and j }} {{ 0 or 'x' }} {{ true }} {{ True }} {{ None }} {{ false }}
{{ 'a' if i }} {{ 'a' if x > 1 else 'b' }} {{ 'a' if i and j else 'b' }} {{ 'a' if not i else 'b' }} {{ 'a' if 1 < i < 9 else 'b' }}
{% if i > 9 %}a{% elif j %}b{% else %}c{% endif %}
a {#- comment {{ i }} -#} b{# c #}d
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



WORDS = ["s", "u", "'a'", "'07'", "''", "f(c=i, d='x')", "'\u00e9'"]
COUNTS = ["i", "j", "n7", "0", "1", "12", "1000"]


def count(r, depth):
    """An expression for a number, in the language of package jinja."""
    pick = r.random()
    if depth == 0 or pick < 0.2:
        return r.choice(COUNTS)
    if pick < 0.7:
        return f"{count(r, depth - 1)} {r.choice(['+', '-', '*', '//', '%', '**'])} {count(r, depth - 1)}"
    return f"({count(r, depth - 1)})" if pick < 0.85 else f"- {count(r, depth - 1)}"


def word(r, depth):
    """An expression for a text."""
    pick = r.random()
    if depth == 0 or pick < 0.15:
        return r.choice(WORDS)
    if pick < 0.4:
        return f"'{r.choice(['%d', '%05d', '%6d|', '%s', '%6s|', '%d%%'])}' % ({count(r, depth - 1)})"
    if pick < 0.6:
        return f"'{r.choice(['%d', '%02d', 'x%s'])}' | format({count(r, depth - 1)})"
    return f"{word(r, depth - 1)} ~ {r.choice([word, count])(r, depth - 1)}" if pick < 0.85 else "u | upper"


def test(r, depth):
    """A test of a condition."""
    return f"{count(r, depth)} {r.choice(['==', '!=', '<', '<=', '>', '>='])} {count(r, depth)}"


def render(source):
    f = lambda **kw: ENV.from_string(FUNC).render(**kw)
    try:
        return ENV.from_string(source).render(f=f, **CONST, **VARS)
    except Exception:
        return None


def main():
    cut = lambda text: [t for line in text.strip("\n").split("\n") for t in re.split(r"(?<=\}\}) (?=\{\{)", line)]
    extra = ["a\n", "a\n\n", "a\r\nb\rc\n", "{{ u }}\n", "{{ 'a\nb' }}", ""]
    parts = {"hand": cut(HAND) + extra, "refused": cut(REFUSED), "random": [], "used": []}
    parts = {name: [{"template": t, "text": render(t)} for t in list] for name, list in parts.items()}
    r = random.Random(3)
    while len(parts["random"]) < 500:
        t = "{{ " + expr(r, r.choice([1, 2, 2, 3])) + " }}"
        v = render(t)
        if v is None and r.random() < 0.8:
            continue
        if len(t) > 90 or v is not None and (len(v) > 200 or "function" in v or "<" in v):
            continue
        parts["random"].append({"template": t, "text": v})
    while len(parts["used"]) < 500:
        e = r.choice([count, word])(r, r.choice([1, 2, 3]))
        t = r.choice(["{{u}}/{{ %s }}.nc", "{{ %s }}", "{% if %t %}a{{i}}{% endif %}"]).replace("%s", e).replace("%t", test(r, 2))
        v = render(t)
        if v is not None and len(t) < 120 and len(v) < 100:
            parts["used"].append({"template": t, "text": v})
    out = {"writer": f"jinja2 {jinja2.__version__}, SandboxedEnvironment", "function": {"f": FUNC}, "constants": CONST, "variables": VARS}
    with open("rendered.json", "w") as fo:
        lines = json.dumps(out, ensure_ascii=False)[:-1]
        for name, list in parts.items():
            lines += f',\n"{name}": [\n' + ",\n".join(json.dumps(x, ensure_ascii=False) for x in list) + "\n]"
        fo.write(lines + "}\n")


main()
