//! Tests the layers with views as a host makes them.

mod blocks;
mod facts;
mod layers;
mod support;
