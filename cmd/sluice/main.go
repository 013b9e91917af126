// Command sluice turns one policy file into NGINX configuration and the
// service that NGINX asks.
package main

import (
	"os"

	"sluice/cmd"
)

func main() {
	os.Exit(cmd.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
