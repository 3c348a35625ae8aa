module github.com/limen-gateway/limen/internal/e2e/oidc

go 1.26.0

require (
	github.com/luikyv/go-oidc v0.12.0
	golang.org/x/crypto v0.41.0
)

require (
	github.com/go-jose/go-jose/v4 v4.1.2 // indirect
	github.com/google/uuid v1.6.0 // indirect
)
