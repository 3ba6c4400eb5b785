// Package jinja renders the templates of reference sets exactly as Jinja2
// does, for the part of its language that such sets use.
//
//	"{{u}}/{{ '%03d' % (i + 1) }}{% if j %}_b{% endif %}.nc"
//	   │          │                       │
//	   │          │                       └── conditional block
//	   │          └── variable: evaluated for each rendering
//	   └── constant: becomes text when the template is compiled
//
// A [Scope] holds the names that templates may use: constants, variables and
// functions (templates that are called, as in {{f(c='text')}}). Compile turns a
// source into a [Template], which is rendered as often as wished with the
// values of the variables. What stands in a pair of braces without a variable is
// evaluated once.
//
// # Supported
//
//   - Values: integers of 64 bits, finite floats, strings, booleans.
//   - Operators: or and not, one comparison, + - ~ * / // % **, unary minus,
//     "a if c else b". The precedence is Jinja2's: 2**3**2 is 64. Of floats, and of
//     an integer and a float: + - * / and comparisons.
//   - '%05d' % i and '%s_%d' % (a, b) with d i u x X o s f %%, the flags - + 0 and
//     space, width and precision.
//   - '{:03d}'.format(i) with 0, width, precision and d x X o f; fields in order or
//     with numbers. 'x'.zfill(3).
//   - Filters: format int lower replace string trim upper.
//   - {% if %} {% elif %} {% else %} {% endif %}, {# comments #}, white space
//     control with "-".
//
// # Refused
//
// Everything else is an error that names it: loops, assignments, macros, raw
// blocks, attributes, tests, lists, tuples except behind "%", dictionaries,
// subscripts, none, arguments of filters and methods that have a name. So are
// names that are not defined, which Jinja2 renders as nothing: that makes wrong
// URLs. Where Go and Python would print something differently, as some letters in
// upper case, it is an error too: a template is rendered as Jinja2 does, or not.
//
// Results are bounded: integers that leave 64 bits and texts beyond [MaxOutput]
// are errors, so that a small template cannot ask for much work.
package jinja
