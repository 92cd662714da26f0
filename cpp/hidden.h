// Included before the generated half of the bridge: what it declares is found inside this library,
// so the Rust functions behind it are not exported.

#pragma GCC visibility push(hidden)
