// Command fakeupstream serves package upstream to whatever wants a model vendor to
// test against. The first line of its output says where:
//
//	listening http://127.0.0.1:PORT/v1
//
// Under /_control/ beside /v1 are GET requests (the ledger), DELETE requests, and
// POST default?fault=NAME.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/limen-gateway/limen/internal/e2e/upstream"
)

func main() {
	log.SetFlags(0)
	listen := flag.String("listen", "127.0.0.1:0", "`address` to serve on")
	models := flag.String("models", "", "more model `IDs`, separated by commas")
	key := flag.String("key", "", "the one API `key` that is accepted; empty accepts all")
	fault := flag.String("fault", "", "`scenario` of calls that choose none")
	faults := flag.Bool("faults", false, "list the faults and exit")
	flag.Parse()

	if *faults {
		for _, f := range upstream.Faults() {
			fmt.Printf("%-18s %s\n", f.Name, f.Doc)
		}
		return
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	options := []upstream.Option{upstream.WithListener(l), upstream.WithKey(*key)}
	if *models != "" {
		options = append(options, upstream.WithModels(strings.Split(*models, ",")...))
	}
	s := upstream.New(options...)
	defer s.Close()
	if err := s.SetDefault(*fault); err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening", s.URL())

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	<-ctx.Done()
}
