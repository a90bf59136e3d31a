//! `ctx setup`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ctx_clients::{
    Address, AddressSource, Client, Environment, Family, FileEdit, Proxy, Restoration, Scope, Undo,
    diff,
};
use ctx_core::{Error, ErrorKind};
use ctx_model::Url;
use ctx_redact::Redactor;
use ctx_server::proxy::ServerConfig;
use ctx_server::running::running;
use ctx_session::Home;
use ctx_terminal::failure::misuse;
use ctx_terminal::format::escaped;
use ctx_terminal::out::{Cell, DIM, GREEN, Out, RED, table};
use serde_json::json;

use crate::args::{Global, Setup};
use crate::setup;

pub(crate) fn run(global: &Global, args: &Setup, out: &Out) -> anyhow::Result<ExitCode> {
    let environment = Environment::from_process();
    let home = Home::from_env()?;
    let scope = match args.project {
        true => Scope::Project(environment.folder.clone()),
        false => Scope::User,
    };
    let records = home.root.join("setup");
    let client = match (args.client, args.undo) {
        (Some(client), true) => return undo(args, client, &scope, &records, out),
        (None, true) => return undo_all(args, &scope, &records, out),
        (None, false) => {
            return list(&proxy(global, args, &home)?, &environment, args.json, out);
        }
        (Some(client), false) => client,
    };
    let proxy = proxy(global, args, &home)?;
    if client == Client::Sdk && !args.project && !args.mcp {
        return exports(&proxy, &environment, args.json, out);
    }
    set_up(args, client, (scope, &records), &proxy, &environment, out)
}

/// Points a client at the proxy. Its records are in the folder beside the scope.
fn set_up(
    args: &Setup,
    client: Client,
    (scope, records): (Scope, &Path),
    proxy: &Proxy,
    environment: &Environment,
    out: &Out,
) -> anyhow::Result<ExitCode> {
    let mut files = client.base_url_files(&scope, proxy, environment)?;
    if args.mcp {
        files.push(client.mcp_file(&scope, &environment.own_program()?, environment)?);
    }
    let server = running(&Home::from_env()?)?;
    let setup = ctx_clients::Setup::plan(client, scope, files, records)?;
    let mut lost = setup.lost_servers(records, environment)?;
    lost.retain(|(family, url)| {
        !server.as_ref().is_some_and(|server| server.sends_to(family.name(), url))
    });
    if !lost.is_empty() && !args.replace {
        return Err(other_servers(client, &lost, server.is_some()).into());
    }
    let changes: Vec<_> = setup.files().iter().map(change).collect();
    let is_written = !changes.is_empty() && confirm(args, &changes, "write this?", out)?;
    if is_written {
        setup.apply(records, &setup.servers_before(records, environment)?)?;
    }
    let project = if args.project { " --project" } else { "" };
    let undo = format!("ctx setup {}{project} --undo", client.id());
    if args.json {
        return report(client, &changes, is_written, Some(&undo), out);
    }
    if changes.is_empty() {
        out.line(format!("{client} is set up already for {}", proxy.url()))?;
    } else if is_written {
        out.line(format!("{client} now sends its requests to {}", proxy.url()))?;
        out.note(format!("`{undo}` restores its files"));
    }
    let applied = client.addresses(environment)?;
    if !lost.is_empty() {
        let (urls, serve) = (urls(&lost), serve_to(&lost, server.is_some()));
        out.warn(format!(
            "requests that went to {urls}, and their keys, go to the upstreams of `ctx serve` now; \
             `{serve}` sends them there"
        ));
    }
    let winner = applied.iter().find(|found| !proxy.is_at(&found.url));
    if (is_written || changes.is_empty()) && (winner.is_some() || applied.is_empty()) {
        warn_of_winner(client, winner, environment, out);
    }
    if !args.dry_run && server.is_none() {
        out.note("no `ctx serve` of this home runs: `ctx serve --background` starts it");
    }
    Ok(ExitCode::SUCCESS)
}

fn other_servers(client: Client, servers: &[(Family, String)], replaces: bool) -> Error {
    let message =
        format!("{client} sends its requests to another server already: {}", urls(servers));
    Error::new(ErrorKind::Conflict, message).hint(format!(
        "`{}` sends requests there; then repeat this command, or give --replace to leave that server",
        serve_to(servers, replaces)
    ))
}

fn urls(servers: &[(Family, String)]) -> String {
    servers.iter().map(|(_, url)| url.as_str()).collect::<Vec<_>>().join(", ")
}

/// Returns the command of a proxy that sends requests to these servers, in place of one that runs.
pub(super) fn serve_to(servers: &[(Family, String)], replaces: bool) -> String {
    let replace = if replaces { " --replace" } else { "" };
    let flags = servers.iter().map(|(of, url)| format!(" --upstream {}={url}", of.name()));
    format!("ctx serve --background{replace}{}", flags.collect::<String>())
}

/// Warns that the address of another source applies, and not that of the setup.
fn warn_of_winner(client: Client, winner: Option<&Address>, environment: &Environment, out: &Out) {
    let other = winner.map(|found| format!(": {} names {}", found.source, found.url));
    let other = other.unwrap_or_default();
    let id = client.id();
    let next = match winner.map(|found| &found.source) {
        Some(AddressSource::Variable(name)) => {
            format!("unset {name}, or use `ctx run -- {id}`")
        }
        Some(source @ AddressSource::File(_)) => {
            format!("`{}` sets it here too", setup_command(client, source, environment))
        }
        _ => format!("`ctx run -- {id}` wins over them"),
    };
    out.warn(format!("in this folder other settings win{other}; {next}"));
}

/// Returns the command for the setup that has an address: the user's, or that of a project.
pub(super) fn setup_command(
    client: Client,
    source: &AddressSource,
    environment: &Environment,
) -> String {
    let usual = format!("ctx setup {}", client.id());
    let AddressSource::File(path) = source else { return usual };
    let is_hidden = |folder: &Path| {
        folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
    };
    let folder = path.ancestors().skip(1).find(|folder| !is_hidden(folder));
    match folder.filter(|folder| *folder != environment.home) {
        Some(folder) if environment.folder == folder => format!("{usual} --project"),
        Some(folder) if environment.folder.starts_with(folder) => {
            format!("cd {}; {usual} --project", folder.display())
        }
        _ => usual,
    }
}

/// Returns the proxy that clients are pointed at.
fn proxy(global: &Global, args: &Setup, home: &Home) -> anyhow::Result<Proxy> {
    if let Some(url) = &args.url {
        let parsed = Url::parse(url).ok().filter(|url| {
            matches!(url.scheme(), "http" | "https") && url.query().or(url.fragment()).is_none()
        });
        let Some(parsed) = parsed else {
            let error = Error::new(ErrorKind::InvalidInput, format!("'{url}' is not a URL"));
            return Err(error.hint("use a URL such as http://127.0.0.1:8787").into());
        };
        return Ok(Proxy::at(parsed.as_str()));
    }
    let server = running(home)?;
    if server.as_ref().is_some_and(|server| server.needs_token) {
        let error = Error::new(ErrorKind::Capability, "the running `ctx serve` asks for its token");
        return Err(error.hint("give the URL with it: --url http://HOST:PORT/t/TOKEN").into());
    }
    Ok(Proxy::at(&match server {
        Some(server) => server.url,
        None => configured(global)?,
    }))
}

/// Returns the URL of the configured address, for clients on this machine.
fn configured(global: &Global) -> anyhow::Result<String> {
    let config: ServerConfig = setup::config(global)?.section()?;
    let listen = config.listen.replace("0.0.0.0", "127.0.0.1");
    if listen.ends_with(":0") {
        let error = Error::new(ErrorKind::Config, "server.listen has no fixed port");
        return Err(error.hint("start `ctx serve --background` first, or give --url").into());
    }
    Ok(format!("http://{listen}"))
}

/// A file, and its change as a diff.
type Change = (PathBuf, String);

fn change(file: &FileEdit) -> Change {
    let before = file.before.as_deref().unwrap_or_default();
    (file.path.clone(), shown_diff(&file.path, before, &file.after))
}

/// Prints changes, unless the output is JSON.
fn show(args: &Setup, changes: &[Change], out: &Out) -> anyhow::Result<()> {
    for line in changes.iter().flat_map(|(_, diff)| diff.lines()).filter(|_| !args.json) {
        let style = match line.as_bytes().first() {
            Some(b'+') => GREEN,
            Some(b'-') => RED,
            _ => DIM,
        };
        out.line(format!("{style}{}{style:#}", escaped(line)))?;
    }
    Ok(())
}

/// Returns a change as a diff without secrets.
fn shown_diff(path: &Path, before: &str, after: &str) -> String {
    let diff = diff(path, before, after);
    Redactor::builtin().redact_lines(&diff).text.into_owned()
}

/// Shows changes, and asks. Returns whether to write them.
fn confirm(args: &Setup, changes: &[Change], question: &str, out: &Out) -> anyhow::Result<bool> {
    if changes.is_empty() {
        return Ok(!args.dry_run);
    }
    show(args, changes, out)?;
    if args.dry_run || args.yes || args.json {
        return Ok(args.yes && !args.dry_run);
    }
    out.ask(question)?;
    Ok(true)
}

fn report(
    client: Client,
    changes: &[Change],
    is_written: bool,
    undo: Option<&str>,
    out: &Out,
) -> anyhow::Result<ExitCode> {
    let files: Vec<_> =
        changes.iter().map(|(path, diff)| json!({ "path": path, "diff": diff })).collect();
    out.json(
        &json!({ "client": client.id(), "written": is_written, "files": files, "undo": undo }),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Undoes the setups of all clients. After an error it goes on with the next one.
fn undo_all(args: &Setup, scope: &Scope, records: &Path, out: &Out) -> anyhow::Result<ExitCode> {
    let clients = Undo::clients(records, scope)?;
    if args.json {
        let error = Error::new(ErrorKind::InvalidInput, "--json undoes the setup of one client");
        let names: Vec<_> = clients.iter().map(|client| client.id()).collect();
        let hint = match names.is_empty() {
            true => "none is set up".to_owned(),
            false => format!("set up are: {}", names.join(", ")),
        };
        return Err(misuse(error.hint(hint)));
    }
    if clients.is_empty() {
        out.line(format!("no setup in {}: nothing to undo", records.display()))?;
    }
    let mut code = ExitCode::SUCCESS;
    for client in clients {
        if let Err(error) = undo(args, client, scope, records, out) {
            out.error(&error);
            code = ExitCode::FAILURE;
        }
    }
    note_projects(None, scope, records, out)?;
    Ok(code)
}

/// Says which setups of projects an undo leaves.
fn note_projects(
    client: Option<Client>,
    scope: &Scope,
    records: &Path,
    out: &Out,
) -> ctx_core::Result<()> {
    for ((of, project), record) in Undo::projects(records)? {
        if client.is_some_and(|client| client != of) || scope.project() == Some(&*project) {
            continue;
        }
        let (id, folder) = (of.id(), project.display());
        let what = match project.exists() {
            true => format!("`cd {folder}; ctx setup {id} --project --undo` undoes it"),
            false => format!("the folder is gone; the record is {}", record.display()),
        };
        out.note(format!("{of} is set up for the project in {folder}: {what}"));
    }
    Ok(())
}

fn undo(
    args: &Setup,
    client: Client,
    scope: &Scope,
    records: &Path,
    out: &Out,
) -> anyhow::Result<ExitCode> {
    let undo = Undo::plan(records, client, scope)?;
    let text = |bytes: &Option<Vec<u8>>| {
        String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned()
    };
    let changes: Vec<_> = (undo.files().iter())
        .filter(|(_, file)| file.now != file.restored)
        .map(|(path, file)| {
            (path.clone(), shown_diff(path, &text(&file.now), &text(&file.restored)))
        })
        .collect();
    if undo.files().is_empty() && !args.json {
        out.line(format!("no setup of {client} in {}: nothing to undo", records.display()))?;
        note_projects(Some(client), scope, records, out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let edited = undo.files().iter().find(|(_, file)| file.is_edited);
    if let Some((path, file)) = edited.filter(|_| !args.force) {
        show(args, &changes, out)?;
        return Err(edited_error(path, file).into());
    }
    let is_written = confirm(args, &changes, "restore this?", out)?;
    if is_written {
        undo.apply(records)?;
    }
    if args.json {
        return report(client, &changes, is_written, None, out);
    }
    if is_written {
        print_undone(client, &undo, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn edited_error(path: &Path, file: &Restoration) -> Error {
    let (message, hint) = match &file.now {
        Some(_) => (
            "the file was edited after the setup",
            "nothing was changed; `--undo --force` takes back only the lines above, and keeps the edits",
        ),
        None => (
            "the file was deleted after the setup",
            "copy it from there to have it back; `--undo --force` only forgets the setup",
        ),
    };
    let before = file.backup.as_ref().map(|path| path.display().to_string());
    Error::new(ErrorKind::Conflict, message)
        .with("path", path.display())
        .with("before", before.unwrap_or_else(|| "there was no file".to_owned()))
        .hint(hint)
}

fn print_undone(client: Client, undo: &Undo, out: &Out) -> std::io::Result<()> {
    let edited: Vec<_> = undo.files().values().filter(|file| file.is_edited).collect();
    let kept = edited.iter().flat_map(|file| &file.kept);
    let kept = kept.map(String::as_str).collect::<Vec<_>>().join(", ");
    out.line(match (edited.is_empty(), kept.is_empty()) {
        (true, _) => format!("{client} is as it was before"),
        (false, true) => {
            format!("the settings of ctx are taken back; your changes of {client} stay")
        }
        (false, false) => {
            format!("what you changed stays, {kept} too; the other settings of ctx are taken back")
        }
    })?;
    for copy in edited.iter().filter_map(|file| file.backup.as_ref()) {
        out.note(format!("the file before the setup is still {}", copy.display()));
    }
    Ok(())
}

/// Prints the environment variables of programs on the SDKs.
fn exports(
    proxy: &Proxy,
    environment: &Environment,
    json: bool,
    out: &Out,
) -> anyhow::Result<ExitCode> {
    let variables = Client::Sdk.launch(proxy, environment)?.variables;
    let variables = variables.iter().map(|(name, url)| (*name, url.display().to_string()));
    if json {
        let variables: serde_json::Map<_, _> =
            variables.map(|(name, url)| (name.to_owned(), url.into())).collect();
        out.json(&json!({ "client": "sdk", "variables": variables }))?;
        return Ok(ExitCode::SUCCESS);
    }
    for (name, url) in variables {
        out.line(format!("export {name}={url}"))?;
    }
    out.note("run these lines in the shell, or use `ctx run -- PROGRAM`; --project writes a .env");
    Ok(ExitCode::SUCCESS)
}

/// Returns the URLs, each once.
fn shown(addresses: &[Address]) -> Vec<&str> {
    let mut urls: Vec<_> = addresses.iter().map(|address| address.url.as_str()).collect();
    urls.dedup();
    urls
}

fn list(
    proxy: &Proxy,
    environment: &Environment,
    json: bool,
    out: &Out,
) -> anyhow::Result<ExitCode> {
    let mut rows = Vec::new();
    let mut values = Vec::new();
    for client in Client::ALL.into_iter().filter(|client| *client != Client::Sdk) {
        let program = environment.find(client.id());
        let addresses = client.addresses(environment);
        let is_set_up = addresses
            .as_ref()
            .is_ok_and(|found| found.iter().any(|address| proxy.is_at(&address.url)));
        let sends_to = match &addresses {
            Ok(found) if found.is_empty() => "its provider".to_owned(),
            Ok(_) if is_set_up => "ctx".to_owned(),
            Ok(found) => shown(found).join(", "),
            Err(error) => error.to_string(),
        };
        values.push(json!({
            "client": client.id(),
            "program": program,
            "setUp": is_set_up,
            "addresses": addresses.as_ref().ok().map(|found| shown(found)),
            "error": addresses.as_ref().err().map(ToString::to_string),
        }));
        let program = program.map_or("not found".to_owned(), |path| path.display().to_string());
        rows.push(vec![client.id().into(), Cell::from(program), Cell::from(escaped(&sends_to))]);
    }
    if json {
        out.json(&json!({ "proxy": proxy.url(), "clients": values }))?;
        return Ok(ExitCode::SUCCESS);
    }
    out.line(table(&["client", "program", "sends its requests to"], rows, 0))?;
    out.note("`ctx setup CLIENT` points a client at ctx; `ctx run -- CLIENT` does it for one run");
    Ok(ExitCode::SUCCESS)
}
