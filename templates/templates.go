package templates

import "embed"

// FS holds the templates: those of files for NGINX, and pages, which are HTML.
//
//go:embed *.tmpl pages/*.tmpl
var FS embed.FS
