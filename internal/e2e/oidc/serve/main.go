// Serve runs the provider for tests that are not in Go. It prints its address,
// reads the gateway's redirect address from the first line of its input, and
// serves until the input ends.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/limen-gateway/limen/internal/e2e/oidc/provider"
)

func main() {
	p := provider.New()
	defer p.Close()
	p.Set("ann", provider.Claims{"email": "ann@example.com", "email_verified": true, "groups": []string{"ops"}})
	p.Set("bob", provider.Claims{"email": "bob@example.com", "email_verified": true})
	fmt.Println(p.URL)
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadString('\n')
	if err == nil {
		err = p.Register(strings.TrimSpace(line))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("registered")
	io.Copy(io.Discard, in)
}
