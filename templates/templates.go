package templates

import "embed"

// FS holds the templates.
//
//go:embed *.tmpl
var FS embed.FS
