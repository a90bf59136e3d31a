//! Tests the layer with views as a host makes them.

mod layer;
