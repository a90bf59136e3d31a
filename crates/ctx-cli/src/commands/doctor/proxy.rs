//! Whether requests pass the proxy.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ctx_clients::Environment;
use ctx_core::{Error, ErrorKind};
use ctx_server::running::RunningServer;
use ctx_testkit::provider::{FakeProvider, Step};
use serde_json::json;

use super::{Examined, Finding};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the provider of the test answers.
const ANSWER: &str = "pong-7f3a";

pub(super) fn check(examined: &Examined, server: Option<&RunningServer>) -> Vec<Finding> {
    let mut findings = Vec::new();
    match server {
        Some(server) => findings.push(health(server)),
        None => findings.push(Finding::ok(
            "proxy",
            "none runs for this home; `ctx serve --background` starts one",
        )),
    }
    findings.extend(through_a_proxy());
    if examined.live {
        match server {
            Some(server) => findings.extend(live(server, &examined.environment)),
            None => findings.push(Finding::error(
                "proxy",
                "--live needs a running proxy",
                "start it: `ctx serve --background`",
            )),
        }
    }
    findings
}

/// Whether the running server answers, and is of this version.
fn health(server: &RunningServer) -> Finding {
    let about = format!("{} (process {}, version {})", server.url, server.pid, server.version);
    match ask(&server.url, "GET", "/healthz", &[], "") {
        Ok(answer) if answer.starts_with("HTTP/1.1 200") => {
            if server.version == env!("CARGO_PKG_VERSION") {
                return Finding::ok("proxy", format!("{about} answers"));
            }
            let hint = "`ctx serve --background --replace` takes over";
            Finding::warning("proxy", format!("{about} is another version"), hint)
        }
        Ok(answer) => {
            let line = answer.lines().next().unwrap_or_default().to_owned();
            let hint = "it may be busy; see proxy/serve.log in the home folder";
            Finding::error("proxy", format!("{about} answers {line}"), hint)
        }
        Err(error) => Finding::of_error("proxy", &error),
    }
}

/// A proxy with a home of its own, which ends when this is dropped.
struct Proxy {
    child: Child,
    url: String,
    _home: tempfile::TempDir,
}

impl Proxy {
    fn start(upstream: &str) -> anyhow::Result<Self> {
        let home = tempfile::tempdir()?;
        let args =
            ["serve", "--json", "--quiet", "--listen", "127.0.0.1:0", "--upstream", upstream];
        let mut command = Command::new(std::env::current_exe()?);
        command.args(args).env("CTX_HOME", home.path()).env_remove("CTX_SERVER_TOKEN");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut proxy = Self { child: command.spawn()?, url: String::new(), _home: home };
        let mut line = String::new();
        if let Some(stdout) = proxy.child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let said: serde_json::Value = serde_json::from_str(&line)?;
        proxy.url = said["url"].as_str().unwrap_or_default().to_owned();
        Ok(proxy)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It is a process of this one, and has nothing to save.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a request in each protocol through a proxy of its own to a provider of its own.
fn through_a_proxy() -> Vec<Finding> {
    let hint = "`ctx serve --upstream URL` shows the error";
    let started = || -> anyhow::Result<_> {
        let provider = FakeProvider::builder().respond(|_| Step::text(ANSWER)).start()?;
        let proxy = Proxy::start(&provider.url())?;
        Ok((provider, proxy))
    };
    let (_provider, proxy) = match started() {
        Ok(started) => started,
        Err(error) => return vec![Finding::error("proxy", error.to_string(), hint)],
    };
    let messages = json!([{ "role": "user", "content": "ping" }]);
    let requests = [
        ("chat completions", "/v1/chat/completions", json!({ "model": "m", "messages": messages })),
        ("responses", "/v1/responses", json!({ "model": "m", "input": "ping" })),
        (
            "messages",
            "/v1/messages",
            json!({ "model": "m", "max_tokens": 9, "messages": messages }),
        ),
        (
            "Gemini",
            "/v1beta/models/m:generateContent",
            json!({ "contents": [{ "role": "user", "parts": [{ "text": "ping" }] }] }),
        ),
    ];
    let failures = requests.iter().filter_map(|(name, path, body)| {
        let headers = [("authorization", "Bearer none"), ("x-api-key", "none")];
        match ask(&proxy.url, "POST", path, &headers, &body.to_string()) {
            Ok(answer) if answer.contains(ANSWER) => None,
            Ok(answer) => Some(format!("{name}: {}", answer.lines().next().unwrap_or_default())),
            Err(error) => Some(format!("{name}: {error}")),
        }
    });
    let failures: Vec<_> = failures.collect();
    match failures.is_empty() {
        true => vec![Finding::ok(
            "proxy",
            "requests of chat completions, responses, messages and Gemini pass to a test provider and back",
        )],
        false => failures.into_iter().map(|text| Finding::error("proxy", text, hint)).collect(),
    }
}

/// Lists the models of each provider with a key in the environment, through the running proxy.
fn live(server: &RunningServer, environment: &Environment) -> Vec<Finding> {
    let asks =
        [("OPENAI_API_KEY", "authorization", "Bearer "), ("ANTHROPIC_API_KEY", "x-api-key", "")];
    let findings = asks.into_iter().filter_map(|(variable, header, prefix)| {
        let key = environment.variable(variable)?;
        let value = format!("{prefix}{key}");
        let headers = [(header, value.as_str()), ("anthropic-version", "2023-06-01")];
        let count = if header == "x-api-key" { 2 } else { 1 };
        let answer = ask(&server.url, "GET", "/v1/models", &headers[..count], "");
        let hint = "check the key and the upstream of `ctx serve`";
        Some(match answer {
            Ok(answer) if answer.starts_with("HTTP/1.1 200") => {
                Finding::ok("proxy", format!("the provider of {variable} answers through ctx"))
            }
            Ok(answer) => {
                let line = answer.lines().next().unwrap_or_default();
                Finding::error("proxy", format!("the provider of {variable} answers {line}"), hint)
            }
            Err(error) => Finding::of_error("proxy", &error),
        })
    });
    let findings: Vec<_> = findings.collect();
    match findings.is_empty() {
        true => {
            let text = "--live found no OPENAI_API_KEY and no ANTHROPIC_API_KEY";
            vec![Finding::warning("proxy", text, "set one; it is not shown")]
        }
        false => findings,
    }
}

/// Sends a request to a server on this machine, and returns the whole answer.
fn ask(
    url: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> ctx_core::Result<String> {
    let host = url.trim_start_matches("http://");
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let length = body.len();
    head.push_str(&format!("content-type: application/json\r\ncontent-length: {length}\r\n\r\n"));
    let exchange = || {
        let mut stream = TcpStream::connect(host)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    exchange().map_err(|error: std::io::Error| {
        Error::new(ErrorKind::Io, "the proxy does not answer")
            .with("url", url)
            .with("cause", &error)
            .hint("see proxy/serve.log in the home folder")
            .source(error)
    })
}
