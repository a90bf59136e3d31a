//! Whether requests pass the proxy.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use ctx_clients::Environment;
use ctx_server::running::RunningServer;
use ctx_testkit::provider::{FakeProvider, Step};
use serde_json::{Value, json};

use super::{Examined, Finding};
use crate::ask::ask;

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
        let said: Value = serde_json::from_str(&line)?;
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

/// A protocol of providers, and how its provider is asked.
struct Protocol {
    name: &'static str,
    /// Returns the path and the body of a short request to a model.
    request: fn(&str) -> (String, Value),
    /// `None` for the older of two protocols of a provider.
    live: Option<Live>,
}

/// A provider whose key may be in the environment.
struct Live {
    /// The environment variable of the key.
    key: &'static str,
    /// The header of the key, and the text before it.
    header: (&'static str, &'static str),
    /// The path of the list of models.
    models: &'static str,
}

const PROTOCOLS: [Protocol; 4] = [
    Protocol {
        name: "chat completions",
        request: |model| {
            let messages = json!([{ "role": "user", "content": "ping" }]);
            let body = json!({ "model": model, "messages": messages });
            ("/v1/chat/completions".to_owned(), body)
        },
        live: None,
    },
    Protocol {
        name: "responses",
        request: |model| {
            let body = json!({ "model": model, "input": "ping", "max_output_tokens": 16 });
            ("/v1/responses".to_owned(), body)
        },
        live: Some(Live {
            key: "OPENAI_API_KEY",
            header: ("authorization", "Bearer "),
            models: "/v1/models",
        }),
    },
    Protocol {
        name: "messages",
        request: |model| {
            let messages = json!([{ "role": "user", "content": "ping" }]);
            let body = json!({ "model": model, "max_tokens": 1, "messages": messages });
            ("/v1/messages".to_owned(), body)
        },
        live: Some(Live {
            key: "ANTHROPIC_API_KEY",
            header: ("x-api-key", ""),
            models: "/v1/models",
        }),
    },
    Protocol {
        name: "Gemini",
        request: |model| {
            let contents = json!([{ "role": "user", "parts": [{ "text": "ping" }] }]);
            let body =
                json!({ "contents": contents, "generationConfig": { "maxOutputTokens": 16 } });
            (format!("/v1beta/{model}:generateContent"), body)
        },
        live: Some(Live {
            key: "GEMINI_API_KEY",
            header: ("x-goog-api-key", ""),
            models: "/v1beta/models",
        }),
    },
];

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
    let failures = PROTOCOLS.iter().filter_map(|Protocol { name, request, .. }| {
        let headers = [("authorization", "Bearer none"), ("x-api-key", "none")];
        let (path, body) = request("models/m");
        match ask(&proxy.url, "POST", &path, &headers, &body.to_string()) {
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

/// Parts of the names of cheap models, the cheapest first.
const CHEAP: [&str; 4] = ["nano", "haiku", "flash-lite", "mini"];

/// Sends a short request to a cheap model of each provider with a key in the environment, through the
/// running proxy.
fn live(server: &RunningServer, environment: &Environment) -> Vec<Finding> {
    let providers =
        || PROTOCOLS.iter().filter_map(|protocol| Some((protocol, protocol.live.as_ref()?)));
    let findings = providers().filter_map(|(protocol, live)| {
        let key = live.key;
        let value = format!("{}{}", live.header.1, environment.variable(key)?);
        Some(match one_request(server, live, protocol.request, &value) {
            Ok(model) => {
                Finding::ok("proxy", format!("{model} of {key}'s provider answers through ctx"))
            }
            Err(error) => {
                let hint = "check the key and the upstream of `ctx serve`";
                Finding::error("proxy", format!("the provider of {key}: {error}"), hint)
            }
        })
    });
    let findings: Vec<_> = findings.collect();
    match findings.is_empty() {
        true => {
            let keys = providers().map(|(_, live)| live.key).collect::<Vec<_>>().join(", ");
            let text = format!("--live found none of {keys}");
            vec![Finding::warning("proxy", text, "set one; it is not shown")]
        }
        false => findings,
    }
}

/// Returns the model that answered.
fn one_request(
    server: &RunningServer,
    live: &Live,
    request: fn(&str) -> (String, Value),
    key: &str,
) -> anyhow::Result<String> {
    let mut headers = vec![(live.header.0, key)];
    if live.header.0 == "x-api-key" {
        headers.push(("anthropic-version", "2023-06-01"));
    }
    let ask = |method, path: &str, body: &str| {
        let answer = ask(&server.url, method, path, &headers, body)?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        if !head.starts_with("HTTP/1.1 200") {
            anyhow::bail!("{}", head.lines().next().unwrap_or_default());
        }
        Ok(body.to_owned())
    };
    let listed: Value = serde_json::from_str(&ask("GET", live.models, "")?)?;
    let models = listed["data"].as_array().or(listed["models"].as_array());
    let names =
        models.into_iter().flatten().map(|model| model["id"].as_str().or(model["name"].as_str()));
    let names: Vec<_> = names.flatten().collect();
    let cheap = CHEAP.iter().find_map(|part| names.iter().find(|name| name.contains(part)));
    let model = *cheap.or(names.first()).context("it lists no models")?;
    let (path, body) = request(model);
    ask("POST", &path, &body.to_string())?;
    Ok(model.to_owned())
}
