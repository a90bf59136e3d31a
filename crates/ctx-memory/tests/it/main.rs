//! The layers, over views as a host makes them.

mod blocks;
mod facts;
mod killed;
mod layers;
mod redaction;
mod support;
mod workspace;
