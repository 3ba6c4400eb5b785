// Package jinja renders the templates of reference sets as Jinja2 does, for the part of
// its language that reference sets use.
//
//	"{{u}}/{{ '%03d' % (i + 1) }}{% if j > 0 %}_b{% endif %}.nc"
//	   │          │                       │
//	   │          │                       └── block with a condition
//	   │          └── expression over variables
//	   └── constant
//
// A [Scope] holds the names that templates may use: constants, variables and
// functions. A function is a template that is called with named arguments, as in
// {{f(c='text')}}. [Scope.Compile] turns a source into a [Template], which is rendered
// as often as wished with the values of the variables.
//
// # Supported
//
//	template  = { text | "{{" value "}}" | "{%" "if" test "%}" template "{%" "endif" "%}" }
//	test      = value [ ("==" | "!=" | "<" | "<=" | ">" | ">=") value ]
//	value     = operand { operator operand }
//	operator  = "**", then "*" "//" "%", then "~", then "+" "-": the first binds closest, all group from the left
//	operand   = { "-" } (integer | string | name | call | "(" value ")") { "|" ("upper" | "format" "(" value ")") }
//	call      = name "(" [ name "=" value { "," name "=" value } ] ")"
//
// Values are integers of 64 bits and strings. Arithmetic and comparisons take two integers; "~"
// joins two values as text. A string, "%" and a value, or the filter format, put the value in place
// of one %d, %5d, %05d, %s or %5s. Strings have the escapes \\ \' \" \n \r and \t.
//
// # Refused
//
// Everything else is an error that names it, such as floats, lists, attributes, other filters,
// statements, comments and white space control with "-". A name that is not defined is an
// error too; Jinja2 renders it as nothing, which makes wrong URLs. A template is rendered as
// Jinja2 does, or not.
//
// Results are bounded: integers that leave 64 bits and texts beyond [MaxOutput]
// are errors, so that a small template cannot ask for much work.
package jinja
