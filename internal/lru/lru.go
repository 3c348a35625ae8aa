// Package lru keeps values for as long as there is room: what was used least
// recently goes first.
package lru

import (
	"container/list"
	"sync"
)

// Cache holds values up to a total size. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	mu    sync.Mutex
	limit int
	size  int
	order *list.List // of *entry[K, V], the latest in front
	byKey map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key   K
	value V
	size  int
}

// New makes a cache for values whose sizes add up to limit, usually in bytes.
func New[K comparable, V any](limit int) *Cache[K, V] {
	return &Cache[K, V]{limit: limit, order: list.New(), byKey: map[K]*list.Element{}}
}

// Get returns a value and notes that it was used.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[key]
	if e == nil {
		return value, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*entry[K, V]).value, true
}

// Put keeps a value in place of the one that the key had. One that is larger
// than the whole cache is not kept.
func (c *Cache[K, V]) Put(key K, value V, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.byKey[key]; old != nil {
		c.drop(old)
	}
	if size > c.limit {
		return
	}
	c.byKey[key] = c.order.PushFront(&entry[K, V]{key, value, size})
	c.size += size
	for c.size > c.limit {
		c.drop(c.order.Back())
	}
}

// Remove forgets a value.
func (c *Cache[K, V]) Remove(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[key]; e != nil {
		c.drop(e)
	}
}

func (c *Cache[K, V]) drop(e *list.Element) {
	gone := c.order.Remove(e).(*entry[K, V])
	delete(c.byKey, gone.key)
	c.size -= gone.size
}
