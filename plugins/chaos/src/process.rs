//! The engine behind a pipe. It has its own loop, because the SDK's loop sends no invalid answers.

use std::io::{self, BufRead, BufReader, Write};
use std::sync::atomic::AtomicBool;

use ctx_engine_sdk::frame::{self, Received};
use ctx_engine_sdk::protocol::Head;
use ctx_engine_sdk::{Driver, Error, HostTransport, Result};

use crate::bytes::Spoiler;
use crate::engine::Chaos;

/// Serves on stdin and stdout.
///
/// # Errors
///
/// An error if a pipe breaks.
pub fn serve() -> io::Result<()> {
    serve_on(BufReader::with_capacity(1 << 16, io::stdin()), io::stdout())
}

/// As [`serve`], on any pair of pipes.
///
/// # Errors
///
/// An error if a pipe breaks.
pub fn serve_on(mut input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let (mut driver, mut spoiler) = (Driver::<Chaos>::default(), Spoiler::default());
    while let Received::Message(message) = frame::read(&mut input, usize::MAX) {
        // A cancel comes too late: its call is already answered.
        if Head::read(&message).is_ok_and(|head| head.verb.is_none()) {
            continue;
        }
        let answer = driver.answer(&message, &mut NoServices, &AtomicBool::new(false));
        let answer = spoiler.spoil(&message, &answer).unwrap_or(answer);
        frame::write(&mut output, answer)?;
    }
    Ok(())
}

struct NoServices;

impl HostTransport for NoServices {
    fn call(&mut self, _: &[u8]) -> Result<Vec<u8>> {
        Err(Error::failed("chaos calls no service of its host"))
    }
}
