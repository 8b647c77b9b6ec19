// This file lets segment.go declare a function without a body.
