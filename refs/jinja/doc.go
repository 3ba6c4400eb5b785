// Package jinja renders the templates of reference sets exactly as Jinja2
// does, for the part of its language that such sets use.
//
//	"{{u}}/{{ '%03d' % (i + 1) }}{% if j %}_b{% endif %}.nc"
//	   │          │                       │
//	   │          │                       └── conditional block
//	   │          └── variable: evaluated for each rendering
//	   └── constant: folded into the text when the template is compiled
//
// A [Scope] holds the names that templates may use: constants, variables and
// functions (templates that are called, as in {{f(c='text')}}). Compile turns a
// source into a [Template], which is rendered as often as wished with the
// values of the variables. What does not depend on a variable is evaluated
// once.
//
// # Supported
//
//   - Values: integers of 64 bits, floats, strings, booleans, none, lists, tuples.
//   - Operators: or and not, comparisons (chained), in, not in, + - ~ * / // % **,
//     "a if c else b", subscripts and slices without a step. The precedence is
//     Jinja2's: 2**3**2 is 64.
//   - '%05d' % i, '%s_%d' % (a, b), '{:03d}'.format(i), 'x'.zfill(3).
//   - Filters: abs count first float format int last length lower replace round
//     string trim upper.
//   - {% if %} {% elif %} {% else %} {% endif %}, {% raw %}, {# comments #},
//     white space control with "-".
//
// # Refused
//
// Everything else is an error that says what it is: loops, assignments, macros,
// attributes, tests, dictionaries, names that are not defined (Jinja2 renders
// those as nothing, which makes wrong URLs). Results are bounded: integers that
// leave 64 bits and texts beyond [MaxOutput] are errors, so that a small
// template cannot ask for much work.
package jinja
