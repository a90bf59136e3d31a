//! Under way.

use ctx_engine_sdk::{Assembled, Engine, Hello, Host, Info, Result, Session};

/// The engine.
#[derive(Debug)]
pub struct Chaos;

impl Engine for Chaos {
    fn hello(_: &Hello, _: &mut Host<'_>) -> Result<(Self, Info)> {
        Ok((Self, Info::new("chaos", env!("CARGO_PKG_VERSION"))))
    }

    fn assemble(&mut self, _: &Session, _: &mut Host<'_>) -> Result<Assembled> {
        Ok(Assembled::default())
    }
}

ctx_engine_sdk::export_engine!(Chaos);
