package zipkv

import "strings"

// codePage437 is the upper half of the character set of names without the
// UTF-8 flag (APPNOTE.TXT, appendix D).
var codePage437 = strings.Split(strings.Join([]string{
	"Ç ü é â ä à å ç ê ë è ï î ì Ä Å",
	"É æ Æ ô ö ò û ù ÿ Ö Ü ¢ £ ¥ ₧ ƒ",
	"á í ó ú ñ Ñ ª º ¿ ⌐ ¬ ½ ¼ ¡ « »",
	"░ ▒ ▓ │ ┤ ╡ ╢ ╖ ╕ ╣ ║ ╗ ╝ ╜ ╛ ┐",
	"└ ┴ ┬ ├ ─ ┼ ╞ ╟ ╚ ╔ ╩ ╦ ╠ ═ ╬ ╧",
	"╨ ╤ ╥ ╙ ╘ ╒ ╓ ╫ ╪ ┘ ┌ █ ▄ ▌ ▐ ▀",
	"α ß Γ π Σ σ µ τ Φ Θ Ω δ ∞ φ ε ∩",
	"≡ ± ≥ ≤ ⌠ ⌡ ÷ ≈ ° ∙ · √ ⁿ ² ■ \u00a0",
}, " "), " ")
