//! Layer 1: is this model's window big enough?
