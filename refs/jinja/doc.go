// Package jinja renders the templates of reference sets exactly as Jinja2 does, for
// the part of its language that such sets use.
//
//	"{{u}}/{{ '%03d' % (i + 1) }}{% if j > 0 %}_b{% endif %}.nc"
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
//   - Values: integers of 64 bits, strings, and finite floats as variables.
//   - Of integers: + - * // % ** and unary minus. Of strings: +. Of all: ~. The
//     precedence is Jinja2's: 2**3**2 is 64.
//   - '%05d' % i and '%s_%d' % (a, b) with d i u x X o s f %%, the flags - + 0 and
//     space, width and precision.
//   - Filters: format int lower string upper.
//   - {% if i > 3 %} {% else %} {% endif %} and a if i > 3 else b, where the test is a
//     value or one comparison of integers or of strings.
//   - White space control with "-".
//
// # Refused
//
// Everything else is an error that names it: loops, assignments, comments,
// and, or and not, elif, methods, other filters, arithmetic of floats, subscripts. So
// are names that are not defined, which Jinja2 renders as nothing: that makes wrong
// URLs. A template is rendered as Jinja2 does, or not.
//
// Results are bounded: integers that leave 64 bits and texts beyond [MaxOutput]
// are errors, so that a small template cannot ask for much work.
package jinja
