//! The engine behind a pipe. It has its own loop, because the SDK's loop sends no invalid answers.

use std::io::{self, BufRead, BufReader, Write};
use std::sync::atomic::AtomicBool;

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
pub fn serve_on(input: impl BufRead, output: impl Write) -> io::Result<()> {
    let mut pipe = Pipe { input, output };
    let (mut driver, mut spoiler) = (Driver::<Chaos>::default(), Spoiler::default());
    while let Some(line) = pipe.read()? {
        // A cancel comes too late: its call is already answered.
        if Head::read(&line).is_ok_and(|head| head.verb.is_none()) {
            continue;
        }
        let answer = driver.answer(&line, &mut pipe, &AtomicBool::new(false));
        let answer = spoiler.spoil(&line, &answer).unwrap_or(answer);
        pipe.write(&answer)?;
    }
    Ok(())
}

struct Pipe<R, W> {
    input: R,
    output: W,
}

impl<R: BufRead, W: Write> Pipe<R, W> {
    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        Ok((self.input.read_until(b'\n', &mut line)? > 0).then_some(line))
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        self.output.write_all(line)?;
        self.output.write_all(b"\n")?;
        self.output.flush()
    }
}

impl<R: BufRead, W: Write> HostTransport for Pipe<R, W> {
    fn call(&mut self, _: &[u8]) -> Result<Vec<u8>> {
        Err(Error::failed("chaos calls no service of its host"))
    }
}
