package process

import (
	"podwalk/engine/kernel"
	"strings"
)

// Answer is what the process answers to an HTTP request now; ok is false where it does
// not speak HTTP.
func (p *Process) Answer(urlPath string, _ kernel.Time, readFile func(path string) (string, bool)) (code int, body string, ok bool) {
	s := p.Server
	if s == nil {
		return 0, "", false
	}
	urlPath, _, _ = strings.Cut(urlPath, "?")
	if s.Any {
		return 200, "ok\n", true
	}
	if strings.HasSuffix(urlPath, "/") {
		urlPath += "index.html"
	}
	if s.Root != "" && readFile != nil {
		if text, found := readFile(s.Root + urlPath); found {
			return 200, text, true
		}
	}
	for _, f := range s.Index {
		if "/"+f == urlPath {
			return 200, "<html><body><h1>Welcome</h1></body></html>\n", true
		}
	}
	return 404, "<html><head><title>404 Not Found</title></head></html>\n", true
}
