//! The transports, as a host uses them. The verb of a call selects the behaviour of the engines,
//! which are written in C and Python.

#![allow(clippy::unwrap_used)] // a test fails by panicking
#![allow(clippy::print_stderr)] // reports why a test is skipped
#![allow(clippy::needless_pass_by_value)] // `json!` values are passed where they are written

mod caller;
mod dylib;
mod process;
mod rust;
mod services;

use std::path::Path;
use std::pin::pin;
use std::process::Command;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use ctx_core::{Counter, CounterKind, Result};
use ctx_engine_registry::foreign::transport::{
    Caller, Dylib, Fault, HostServices, Process, Program, Transport,
};
use ctx_engine_sdk::protocol::Encoding;
use serde_json::{Value, json};
use tempfile::TempPath;

/// Longer than any answer takes.
const LONG: Duration = Duration::from_secs(120);

/// The deadline of calls that are not answered.
const SHORT: Duration = Duration::from_millis(300);

/// An engine behind its caller.
struct Engine {
    caller: Caller,
    services: Arc<HostServices>,
    encoding: Encoding,
}

impl Engine {
    fn open(open: impl FnOnce() -> Result<Box<dyn Transport>> + Send + 'static) -> Self {
        let services = HostServices::new("told").with_counter(Counter::new(CounterKind::Chars4));
        let caller = Caller::start("told", open).expect("a thread");
        Self { caller, services: Arc::new(services), encoding: Encoding::Json }
    }

    fn library(file: impl AsRef<Path> + Send + 'static) -> Self {
        Self::open(move || Ok(Box::new(Dylib::open(file.as_ref())?)))
    }

    fn program(program: Program) -> Self {
        Self::open(move || Ok(Box::new(Process::open(&program)?)))
    }

    async fn ask(&self, verb: &str, params: Value, deadline: Duration) -> Result<Value, Fault> {
        let params = self.encoding.encode(&params).expect("it is encoded");
        let services = self.services.clone();
        let answer = self.caller.call(verb, &params, deadline, services).await?;
        Ok(answer.read()?.expect("a value"))
    }

    fn call(&self, verb: &str) -> Result<Value, Fault> {
        block_on(self.ask(verb, json!({}), LONG))
    }

    /// Returns the name of the fault of a call that must fail.
    fn fault(&self, verb: &str, deadline: Duration) -> &'static str {
        block_on(self.ask(verb, json!({}), deadline)).expect_err("a fault").name()
    }
}

/// Compiles the engine in C, with some of its macros defined. Each library is a separate file, and
/// so has its own counters when it is loaded.
fn library(defines: &[&str]) -> TempPath {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = tempfile::Builder::new().suffix(".so").tempfile().unwrap().into_temp_path();
    let built = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Werror", "-shared", "-fPIC", "-pthread", "-o"])
        .arg(&library)
        .args(defines.iter().map(|define| format!("-D{define}")))
        .arg("-I")
        .arg(here.join("../ctx-engine-sdk/include"))
        .arg(here.join("tests/it/carriers/fixtures/told.c"))
        .output()
        .expect("a C compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    library
}

/// Returns the engine in Python, if Python is installed.
fn python() -> Option<Program> {
    let is_there = Command::new("python3").arg("--version").output();
    if is_there.is_ok_and(|output| output.status.success()) {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/carriers/fixtures");
        return Some(Program::new("python3").with_args([fixtures.join("told.py")]));
    }
    assert!(std::env::var_os("CI").is_none(), "a test in CI needs python3");
    eprintln!("skipped: python3 is missing");
    None
}

/// Returns a shell script as an engine.
fn shell(script: &str) -> Program {
    Program::new("/bin/sh").with_args(["-c", script])
}

/// An executor without a runtime.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Polls a future once.
fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}
