package worker

import "sync"

// slots counts requests in flight, and tells when one ends.
type slots struct {
	mu    sync.Mutex
	total int
	taken int
	freed chan struct{} // buffered: at least one has been freed since it was read
}

func newSlots(total int) *slots { return &slots{total: total, freed: make(chan struct{}, 1)} }

func (s *slots) free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total - s.taken
}

func (s *slots) busy() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

func (s *slots) take(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken += n
}

func (s *slots) giveBack() {
	s.mu.Lock()
	s.taken--
	s.mu.Unlock()
	wake(s.freed)
}

// wake leaves one signal in a buffered channel.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
