//! Under way.

use ctx_engine_sdk::{Assembled, Engine, Hello, Host, Info, Result, Session};

/// The engine.
#[derive(Debug)]
pub struct Lossless;

impl Engine for Lossless {
    fn hello(_: &Hello, _: &mut Host<'_>) -> Result<(Self, Info)> {
        Ok((Self, Info::new("lossless", env!("CARGO_PKG_VERSION"))))
    }

    fn assemble(&mut self, _: &Session, _: &mut Host<'_>) -> Result<Assembled> {
        Ok(Assembled::default())
    }
}

ctx_engine_sdk::export_engine!(Lossless);
