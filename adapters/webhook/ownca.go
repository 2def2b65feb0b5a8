package webhook

import (
	"crypto/x509"
	"sync"
)

// maxOwn is how many sets of certificates are kept with their connections.
const maxOwn = 256

// senders are by the certificates that they trust: a connection that one endpoint's
// certificates vouch for is never used for another endpoint.
type senders struct {
	mu sync.Mutex
	by map[string]*Sender
}

// trusting returns the sender that trusts these certificates and no others. Text that
// holds none trusts nobody.
func (s *senders) trusting(pem string, c Config) *Sender {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.by[pem]; known != nil {
		return known
	}
	if len(s.by) >= maxOwn {
		for _, old := range s.by {
			old.transport.CloseIdleConnections()
		}
		s.by = nil
	}
	if s.by == nil {
		s.by = map[string]*Sender{}
	}
	c.RootCAs = x509.NewCertPool()
	c.RootCAs.AppendCertsFromPEM([]byte(pem))
	s.by[pem] = New(c)
	return s.by[pem]
}

func (s *senders) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, own := range s.by {
		own.transport.CloseIdleConnections()
	}
}
