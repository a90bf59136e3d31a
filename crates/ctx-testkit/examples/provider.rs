//! A fake model provider for manual tests: `ctx compact --model` without a key, a client against
//! provider failures, an agent with and without ctx in front of it.
//!
//! ```text
//! cargo run -p ctx-testkit --features provider --example provider -- \
//!     [--port N] [--port-file FILE] [--script FILE.json] [--window TOKENS] [--limit-chars N] \
//!     [--strict] [--log FILE.jsonl] [--idle SECONDS]
//! ```
//!
//! It listens on loopback only, prints its URL (the port is also written to `--port-file`), and
//! stops after ten minutes without a request. Without a script every answer is a summary of the
//! prompt. The format of a script is documented at `ctx_testkit::provider::Scenario`. `--log`
//! writes a line for each finished request: API, length, cached tokens, whether it was refused and
//! why, and the body.

#![allow(clippy::print_stdout)] // the URL is the output of this program

use std::fs::File;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Tokens};
use ctx_testkit::provider::{Builder, Request, Scenario};
use serde_json::{Value, json};

const IDLE: Duration = Duration::from_secs(600);
const USAGE: &str = "usage: provider [--port N] [--port-file FILE] [--script FILE.json] \
    [--window TOKENS] [--limit-chars N] [--strict] [--log FILE.jsonl] [--idle SECONDS]";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut scenario = Scenario::default();
    let (mut window, mut limit, mut strict) = (None, None, false);
    let (mut port, mut port_file, mut log, mut idle) = (0, None, None, IDLE);
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        if flag == "--strict" {
            strict = true;
            continue;
        }
        let value = arguments.next().ok_or_else(|| wrong(&flag))?;
        let number = || value.parse::<u32>().map_err(|_| wrong(&flag));
        match flag.as_str() {
            "--port" => port = u16::try_from(number()?).map_err(|_| wrong(&flag))?,
            "--port-file" => port_file = Some(value),
            "--script" => scenario = Scenario::from_json(&std::fs::read_to_string(&value)?)?,
            "--window" => window = Some(Tokens(number()?)),
            "--limit-chars" => limit = Some(u64::from(number()?)),
            "--log" => log = Some(File::create(&value)?),
            "--idle" => idle = Duration::from_secs(number()?.into()),
            _ => return Err(wrong(&flag).into()),
        }
    }
    scenario.window = window.or(scenario.window);
    scenario.limit_chars = limit.or(scenario.limit_chars);
    scenario.strict = strict || scenario.strict;
    let mut builder = Builder::from(scenario).port(port);
    if let Some(file) = log {
        let file = Mutex::new(file);
        builder = builder.observe(move |request| {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            // A log that cannot be written must not fail the request.
            let _ = writeln!(file, "{}", line(request));
        });
    }
    let provider = builder.start()?;
    if let Some(path) = port_file {
        // Readers that wait for the file must find it complete.
        let unfinished = format!("{path}.part");
        std::fs::write(&unfinished, provider.address().port().to_string())?;
        std::fs::rename(&unfinished, &path)?;
    }
    println!("{}", provider.v1());
    provider.wait_idle(idle);
    println!("stopped after {} requests", provider.count());
    Ok(())
}

/// Returns a request as a line of the log.
fn line(request: &Request) -> Value {
    let roles: Vec<_> = request.prompt.said.iter().map(|(role, _)| role.as_str()).collect();
    json!({
        "number": request.number,
        "method": request.method,
        "path": request.path.split('?').next(),
        "api": request.api,
        "model": request.model(),
        "stream": request.stream(),
        "status": request.status,
        "refusal": request.refusal,
        "outcome": format!("{:?}", request.outcome).to_lowercase(),
        "chars": request.prompt.chars,
        "tokens": request.prompt.tokens(),
        "cached": request.usage.cache_read,
        "output": request.usage.output,
        "roles": roles,
        "tools": request.prompt.tools,
        "newest": request.prompt.newest(),
        "headers": headers(request),
        "body": request.json,
    })
}

/// Returns the headers without credentials.
fn headers(request: &Request) -> Value {
    let is_key = |name: &str| {
        matches!(name, "authorization" | "x-api-key" | "api-key" | "x-goog-api-key" | "cookie")
    };
    let plain = request.headers.iter().filter(|(name, _)| !is_key(name));
    plain.map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect()
}

fn wrong(flag: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, USAGE).with("at", flag)
}
