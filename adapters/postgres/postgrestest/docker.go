package postgrestest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	"waybill/adapters/embedded"
)

const (
	doorDocker   = "docker"
	defaultImage = "postgres:17-alpine"
	postgresPort = "5432/tcp"

	bootPatience = time.Minute // for PostgreSQL, once its container runs
)

// dockerDoor starts PostgreSQL in a container that our reaper removes. Its name is
// written down first, so that one whose starter is killed is found.
//
// Testcontainers' own reaper, Ryuk, must not have it: that one removes a container
// ten seconds after the process that started it, while others still use it.
func dockerDoor(l lodge) embedded.Door {
	return embedded.Door{Name: doorDocker, Open: func(ctx context.Context) (embedded.Found, error) {
		if err := os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"); err != nil {
			return embedded.Found{}, err
		}
		log.SetDefault(log.NewNoopLogger()) // it greets on standard error
		image := cmp.Or(os.Getenv(imageVariable), defaultImage)
		name := "waybill-test-" + filepath.Base(l.dir)
		if err := os.WriteFile(l.path("container"), []byte(name), 0o600); err != nil {
			return embedded.Found{}, err
		}
		url, err := runContainer(ctx, image, name)
		if err != nil {
			return embedded.Found{}, fmt.Errorf("image %s: %w", image, err)
		}
		return embedded.FoundAt(url, "Docker image "+image, nil), nil
	}}
}

// runContainer returns a superuser's URL of the server in it.
func runContainer(ctx context.Context, image, name string) (string, error) {
	password := rand.Text()
	c, err := testcontainers.Run(ctx, image,
		testcontainers.WithName(name),
		testcontainers.WithEnv(map[string]string{
			"POSTGRES_PASSWORD":    password,
			"POSTGRES_DB":          embedded.Database,
			"POSTGRES_INITDB_ARGS": "--encoding=UTF8 --locale=C --no-sync",
		}),
		testcontainers.WithCmd(serverCommand()...),
		testcontainers.WithExposedPorts(postgresPort),
		testcontainers.WithHostConfigModifier(onLoopback),
	)
	if err != nil {
		return "", err
	}
	return awaitServer(ctx, c, func(at string) string {
		u := url.URL{
			Scheme: "postgres", User: url.UserPassword("postgres", password),
			Host: at, Path: "/" + embedded.Database, RawQuery: "sslmode=disable",
		}
		return u.String()
	})
}

// serverCommand is the command line of the image's server.
func serverCommand() []string {
	command := []string{"postgres", "-c", "fsync=off", "-c", "full_page_writes=off"}
	for name, value := range settings {
		command = append(command, "-c", name+"="+value)
	}
	return command
}

// onLoopback publishes the port to this machine alone.
func onLoopback(c *container.HostConfig) {
	c.PortBindings = network.PortMap{
		network.MustParsePort(postgresPort): {{HostIP: netip.MustParseAddr("127.0.0.1")}},
	}
}

// awaitServer returns the URL at which the server in the container answers.
func awaitServer(ctx context.Context, c *testcontainers.DockerContainer, urlAt func(string) string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, bootPatience)
	defer cancel()
	for {
		addresses, err := addressesOf(ctx, c)
		for _, at := range addresses {
			knockErr := knock(ctx, urlAt(at), time.Second)
			if knockErr == nil {
				return urlAt(at), nil
			}
			err = errors.Join(err, knockErr)
		}
		if state, stateErr := c.State(ctx); stateErr != nil || !state.Running {
			said := tail(context.WithoutCancel(ctx), c)
			return "", fmt.Errorf("its PostgreSQL does not answer: %w; the container said:\n%s", err, said)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// addressesOf is where the server may be reached: the published port, or the
// container itself for those who are in a container beside it. Testcontainers takes
// every machine with a file /.dockerenv for the latter, and the gateway's address,
// where nothing is published.
func addressesOf(ctx context.Context, c *testcontainers.DockerContainer) ([]string, error) {
	port, err := c.MappedPort(ctx, postgresPort)
	if err != nil {
		return nil, err
	}
	addresses := []string{"127.0.0.1:" + port.Port()}
	if ip, err := c.ContainerIP(ctx); err == nil && ip != "" {
		addresses = append(addresses, net.JoinHostPort(ip, "5432"))
	}
	return addresses, nil
}

// tail is the end of a container's output.
func tail(ctx context.Context, c *testcontainers.DockerContainer) string {
	const enough = 2000
	logs, err := c.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer logs.Close()
	text, _ := io.ReadAll(logs)
	return string(text[max(0, len(text)-enough):])
}
