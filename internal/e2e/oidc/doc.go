// Package oidc proves single sign-on with the whole gateway at a provider of
// OpenID Connect that a library of others' is. It is a module of its own, so
// that the gateway does not depend on that.
package oidc
