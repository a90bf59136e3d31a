//! The layers, over views as a host makes them.

mod blocks;
mod layers;
mod support;
mod workspace;
