// Package templates holds the text of the NGINX files that Sluice writes, one
// template for each kind of file. Package gen fills them with tokens: text
// that was quoted and checked for the place it stands in. A template begins
// with the names of what it is given, and decides nothing that a reader of the
// rendered file would not expect to see decided there.
//
// Below pages stand pages for browsers, which html/template fills and escapes.
//
// Floor 0: it imports nothing of ours.
package templates
