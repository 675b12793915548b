"""The demos of `airmirror demo`, and the stack that `airmirror up` leaves running."""
