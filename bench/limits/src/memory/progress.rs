//! Work that takes longer than a moment: its time, and a sign of life.

use std::io::{Write, stderr};
use std::ops::Range;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The number of segments that are generated at once.
const CHUNK: usize = 1_000;

/// Splits the numbers of segments into parts that are generated at once.
pub(super) fn chunks(numbers: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = numbers.end;
    numbers.step_by(CHUNK).map(move |from| from..end.min(from + CHUNK))
}

/// Runs work, and says on stderr how long it has been running, if it takes more than a second.
pub(super) fn shown<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let (done, is_done) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let started = Instant::now();
            let mut wait = Duration::from_secs(1);
            while is_done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                let _ = writeln!(stderr(), "  {what}: {} s", started.elapsed().as_secs());
                wait = Duration::from_secs(20);
            }
        });
        // Dropped after the work, also if it panics.
        let _done = done;
        work()
    })
}

/// Measures the parts of some work, without the generation of its input in between.
#[derive(Debug, Default)]
pub(super) struct Stopwatch(Duration);

impl Stopwatch {
    pub(super) fn run<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let result = work();
        self.0 += started.elapsed();
        result
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.0
    }
}

/// Returns how many milliseconds some work took.
pub(super) fn ms<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<f64, E> {
    let started = Instant::now();
    // Kept until the clock has stopped, so that dropping it is not measured.
    let result = work()?;
    let took = started.elapsed();
    drop(result);
    Ok(took.as_secs_f64() * 1e3)
}
