//! The clients on this machine, and the keys in the environment.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use ctx_clients::{Address, Client, Environment, Proxy, one_for_each_api};
use ctx_server::running::RunningServer;
use ctx_terminal::shutdown::ProcessGroup;
use tokio::process::Command;
use tokio::task::JoinSet;

use super::{Examined, Finding};
use crate::commands::setup::{serve_to, setup_command};

/// How long a client may take to print its version.
const PATIENCE: Duration = Duration::from_secs(10);

/// Maximum characters of a line that a client prints.
const LONGEST: usize = 100;

/// Says of each installed client which version it is, and where it sends its requests.
pub(super) async fn check(examined: &Examined, server: Option<&RunningServer>) -> Vec<Finding> {
    let environment = &examined.environment;
    let installed = Client::ALL.into_iter().filter_map(|client| {
        let program = environment.find(client.id()).filter(|_| client != Client::Sdk)?;
        Some((client, program))
    });
    let mut versions = JoinSet::new();
    for (client, program) in installed {
        versions.spawn(async move { (client, version(&program).await, program) });
    }
    let mut found = versions.join_all().await;
    found.sort();
    if found.is_empty() {
        let hint = "install one, or point a program on an SDK at ctx: `ctx setup sdk`";
        return vec![Finding::warning("client", "none of the known clients was found", hint)];
    }
    let mut findings = Vec::new();
    let records = examined.home.root.join("setup");
    let finding = |client, about: &str, environment: &Environment| {
        finding(client, about, environment, (server, &records)).unwrap_or_else(|error| {
            let found = Finding::of_error("client", &error);
            Finding { text: format!("{about}: {}", found.text), ..found }
        })
    };
    for (client, version, program) in found {
        let about = match version {
            Ok(version) => format!("{client} {version} ({})", program.display()),
            Err(cause) => {
                let text = format!("{client} ({}) does not start: {cause}", program.display());
                let hint = format!("`{} --version` has to print a version", client.id());
                findings.push(Finding::warning("client", text, hint));
                client.to_string()
            }
        };
        findings.push(finding(client, &about, environment));
        let usual = client.addresses(environment).ok();
        for (name, profile) in client.profiles(environment) {
            if client.addresses(&profile).ok() != usual {
                findings.push(finding(
                    client,
                    &format!("{client} with --profile {name}"),
                    &profile,
                ));
            }
        }
    }
    findings
}

/// Says where a client sends its requests. The folder is that of the setups.
fn finding(
    client: Client,
    about: &str,
    environment: &Environment,
    (server, records): (Option<&RunningServer>, &Path),
) -> ctx_core::Result<Finding> {
    let addresses = client.addresses(environment)?;
    let is_ctx = |url: &str| server.is_some_and(|server| Proxy::at(&server.url).is_at(url));
    let is_other = |found: &&Address| !is_ctx(&found.url) && !found.is_public();
    let others: Vec<_> = addresses.iter().filter(is_other).collect();
    let id = client.id();
    let args: String = environment.args.iter().map(|arg| format!(" {}", arg.display())).collect();
    let run = format!("`ctx run -- {id}{args}` for one run");
    let Some(other) = others.first() else {
        return Ok(match addresses.is_empty() || addresses.iter().all(Address::is_public) {
            false => through_ctx(client, about, environment, (server, records))?,
            true => Finding {
                hint: Some(format!("`ctx setup {id}`, or {run}")),
                ..Finding::ok("client", format!("{about} is not set up"))
            },
        });
    };
    let Address { url, source, .. } = other;
    let text = format!("{about} sends its requests to {url}, set in {source}");
    let servers = others.iter().map(|found| (found.family, found.url.clone()));
    let servers = one_for_each_api(servers);
    let upstream = format!("`{}`", serve_to(&servers, server.is_some()));
    let setup = setup_command(client, source, environment);
    // A setup changes no profile.
    let through = match args.is_empty() {
        true => format!("{run}, or {upstream} and then `{setup}`"),
        false => run,
    };
    if !other.is_local() {
        return Ok(Finding { hint: Some(through), ..Finding::ok("client", text) });
    }
    if other.answers() {
        let text = format!("{text}, which is not the ctx of this home");
        return Ok(Finding::warning("client", text, through));
    }
    let hint = match server {
        Some(_) => format!("`{setup}` points it at the running ctx"),
        None => {
            let listen = url.split("://").nth(1).and_then(|rest| rest.split('/').next());
            let listen = listen.map(|at| format!(" --listen {at}")).unwrap_or_default();
            let serve = serve_to(&client.replaced(records, environment)?, false);
            format!("start it: `{serve}{listen}`; or `{setup} --undo`")
        }
    };
    Ok(Finding::error("client", format!("{text}, and nothing listens there"), hint))
}

/// Says whether a proxy sends the requests of a client where they went before its setup.
fn through_ctx(
    client: Client,
    about: &str,
    environment: &Environment,
    (server, records): (Option<&RunningServer>, &Path),
) -> ctx_core::Result<Finding> {
    let mut lost = client.replaced(records, environment)?;
    lost.retain(|(of, url)| !server.is_some_and(|server| server.sends_to(of.name(), url)));
    let Some((_, url)) = lost.first() else {
        return Ok(Finding::ok("client", format!("{about} sends its requests to ctx")));
    };
    let text = format!(
        "{about} sends its requests to ctx, which does not send them to {url}, where they went before"
    );
    Ok(Finding::warning("client", text, format!("`{}`", serve_to(&lost, true))))
}

/// Returns the number in the first line that a client prints as its version, else the line; or why
/// there is none.
async fn version(program: &Path) -> Result<String, String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let child = command.spawn().map_err(|error| error.to_string())?;
    let _group = ProcessGroup::of(child.id());
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
    let output = output.map_err(|_| format!("no answer after {} s", PATIENCE.as_secs()))?;
    let output = output.map_err(|error| error.to_string())?;
    let first = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        line.map(|line| line.chars().take(LONGEST).collect::<String>())
    };
    match first(&output.stdout).filter(|_| output.status.success()) {
        Some(line) => {
            let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
            let number = line.split_whitespace().find(is_number).map(str::to_owned);
            Ok(number.unwrap_or(line))
        }
        None => Err(first(&output.stderr).unwrap_or_else(|| output.status.to_string())),
    }
}

/// Says which keys are in the environment, without their values.
pub(super) fn keys(environment: &Environment) -> Vec<Finding> {
    const NAMES: [&str; 5] = [
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "OPENROUTER_API_KEY",
    ];
    let set: Vec<_> =
        NAMES.into_iter().filter(|name| environment.variable(name).is_some()).collect();
    let text = match set.is_empty() {
        true => "no key in the environment: clients use their own logins".to_owned(),
        false => format!("in the environment: {}", set.join(", ")),
    };
    vec![Finding::ok("key", text)]
}
