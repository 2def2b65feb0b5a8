package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"text/template"
)

// ready is what a program needs of a running dev; the first line with --json.
type ready struct {
	URL         string `json:"url"`
	DatabaseURL string `json:"database_url"`
	AdminKey    string `json:"admin_key"`
}

// readyText is the same for a person, with something to paste.
var readyText = template.Must(template.New("ready").Parse(`Waybill is ready. Ctrl-C stops all of it.

  API        {{.URL}}
  Admin key  {{.AdminKey}}
  Database   {{.DatabaseURL}}
             {{.Source}}; {{.Data}}
{{- if .Keyset}}
  Keyset     {{.Keyset}}
{{- end}}

Try it: an endpoint that you run yourself (http is allowed on this machine), a message for it,
and what became of that.

  W={{.URL}} KEY={{.AdminKey}}

  ENDPOINT=$(curl -s $W/v1/endpoints -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \
    -d '{"url":"http://127.0.0.1:9000/hook"}' | sed 's/.*"id":"\([^"]*\)".*/\1/')

  DELIVERY=$(curl -s $W/v1/endpoints/$ENDPOINT/deliveries -H "Authorization: Bearer $KEY" \
    -H 'Content-Type: application/json' -H 'Waybill-Event-Type: order.paid' -H 'Idempotency-Key: order-1' \
    -d '{"order":1}' | sed 's/.*"delivery_id":"\([^"]*\)".*/\1/')

  curl -s $W/v1/deliveries/$DELIVERY/events -H "Authorization: Bearer $KEY"

The command line works on the same ledger:

  export WAYBILL_DATABASE_URL='{{.DatabaseURL}}'{{if .Keyset}} WAYBILL_KEYSET_FILE='{{.Keyset}}'{{end}}
  waybill deliveries list
`))

// announce says that the node is ready, once it is.
func (c *devCmd) announce(in *invocation, p *place, n *node, key string) error {
	r := ready{URL: "http://" + reachable(n.Addr()), DatabaseURL: p.URL, AdminKey: key}
	if in.JSON {
		return printJSON(in.out, r)
	}
	data := "what is stored there stays"
	if p.passing {
		data = "temporary, it ends with this command (--data-dir keeps it)"
	}
	err := readyText.Execute(in.out, map[string]string{
		"URL": r.URL, "AdminKey": key, "DatabaseURL": p.URL, "Keyset": p.KeysetFile, "Source": p.Source, "Data": data,
	})
	if err != nil {
		return fmt.Errorf("say that all is ready: %w", err)
	}
	return nil
}

// reachable is a listening address as a client on this machine dials it.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() {
		return addr
	}
	return net.JoinHostPort("127.0.0.1", port)
}

// surviveBrokenPipe makes writing to a reader that has gone (waybill demo | head) an
// error like others, so that the program can still put away what it started. Its
// children are not affected.
func surviveBrokenPipe() (undo func()) {
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGPIPE)
	return func() { signal.Stop(ignored) }
}
