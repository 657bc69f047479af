package kubectl

import (
	"fmt"
	"strings"
)

// Words splits a command line as a shell does: quotes, backslashes, comments. What only a
// shell can do is refused with an error that says so.
func Words(line string) ([]string, error) {
	var out []string
	var word strings.Builder
	open := false // a word has begun (it may be empty: '')
	end := func() {
		if open {
			out = append(out, word.String())
			word.Reset()
			open = false
		}
	}
	rs := []rune(line)
	for i := 0; i < len(rs); i++ {
		c := rs[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			end()
		case c == '#' && !open:
			return out, nil
		case c == '\\':
			if i++; i < len(rs) && rs[i] != '\n' {
				word.WriteRune(rs[i])
				open = true
			}
		case c == '\'' || c == '"':
			n, text, err := quoted(rs[i:])
			if err != nil {
				return nil, err
			}
			word.WriteString(text)
			open, i = true, i+n-1
		case strings.ContainsRune("|&;<>()`", c), c == '$' && i+1 < len(rs) && shellName(rs[i+1]):
			return nil, &ShellError{Char: string(c)}
		default:
			word.WriteRune(c)
			open = true
		}
	}
	end()
	return out, nil
}

func shellName(c rune) bool {
	return c == '(' || c == '{' || c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// quoted reads a quoted string at the beginning of rs; n is how many runes it takes.
func quoted(rs []rune) (n int, text string, err error) {
	q := rs[0]
	var b strings.Builder
	for i := 1; i < len(rs); i++ {
		switch {
		case rs[i] == q:
			return i + 1, b.String(), nil
		case q == '"' && rs[i] == '\\' && i+1 < len(rs) && strings.ContainsRune("\"\\$`\n", rs[i+1]):
			i++
			if rs[i] != '\n' {
				b.WriteRune(rs[i])
			}
		default:
			b.WriteRune(rs[i])
		}
	}
	return 0, "", fmt.Errorf("the quote %c is not closed", q)
}

// ShellError is something in a command line that needs a shell.
type ShellError struct{ Char string }

func (e *ShellError) Error() string {
	what := map[string]string{
		"|": "pipes do", ">": "redirection does", "<": "redirection does", ";": "several commands on one line do",
		"&": "background commands do", "$": "variables do", "`": "command substitution does", "(": "subshells do", ")": "subshells do",
	}[e.Char]
	return fmt.Sprintf("%q: this prompt runs one kubectl command and no shell, so %s not work here (quote the character to pass it on)", e.Char, what)
}
