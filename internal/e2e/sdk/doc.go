// Package sdk proves that the official SDKs for Go work with the gateway as it is,
// and that what it sends to the vendors is what their own SDKs would send. It is a
// module of its own, so that the gateway does not depend on the SDKs.
package sdk
