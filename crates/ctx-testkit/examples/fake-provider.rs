//! A fake model provider to try things by hand: `ctx compact --model` without a key, a client on a
//! bad day.
//!
//! ```text
//! cargo run -p ctx-testkit --features provider --example fake-provider -- \
//!     [--port N] [--script FILE.json] [--window TOKENS] [--idle SECONDS]
//! ```
//!
//! It listens on loopback only, prints its URL, and stops when nothing was asked for ten minutes.
//! Without a script every answer is a summary of the prompt. What a script holds is documented at
//! `ctx_testkit::provider::Scenario`.

#![allow(clippy::print_stdout)] // The URL is what this program has to say.

use std::time::Duration;

use ctx_core::{Error, ErrorKind, Tokens};
use ctx_testkit::provider::{Builder, Scenario};

const IDLE: Duration = Duration::from_secs(600);
const USAGE: &str =
    "usage: fake-provider [--port N] [--script FILE.json] [--window TOKENS] [--idle SECONDS]";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut scenario = Scenario::default();
    let (mut window, mut port, mut idle) = (None, 0, IDLE);
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let value = arguments.next().ok_or_else(|| wrong(&flag))?;
        let number = || value.parse::<u32>().map_err(|_| wrong(&flag));
        match flag.as_str() {
            "--port" => port = u16::try_from(number()?).map_err(|_| wrong(&flag))?,
            "--script" => scenario = Scenario::from_json(&std::fs::read_to_string(&value)?)?,
            "--window" => window = Some(Tokens(number()?)),
            "--idle" => idle = Duration::from_secs(number()?.into()),
            _ => return Err(wrong(&flag).into()),
        }
    }
    scenario.window = window.or(scenario.window);
    let provider = Builder::from(scenario).port(port).start()?;
    println!("{}", provider.v1());
    provider.wait_idle(idle);
    println!("stopped after {} requests", provider.count());
    Ok(())
}

fn wrong(flag: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, USAGE).with("at", flag)
}
