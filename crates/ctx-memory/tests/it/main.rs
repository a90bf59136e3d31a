//! The layers, over views as a host makes them.

mod layers;
mod support;
mod workspace;
