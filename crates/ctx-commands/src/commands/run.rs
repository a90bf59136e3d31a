//! `ctx run`.

mod title;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};

use ctx_clients::{Client, Environment, Family, Proxy, Window};
use ctx_config::{Config, Models};
use ctx_core::{Error, ErrorKind};
use ctx_disk::io_error;
use ctx_server::http::Shutdown;
use ctx_server::proxy::ServerConfig;
use ctx_server::running::running;
use ctx_session::{Home, clock};
use ctx_terminal::out::Out;
use ctx_terminal::shutdown;
use serde_json::json;

use super::serve::Service;
use crate::args::{Global, Run};
use crate::ask::has_passed;
use crate::setup;
use title::Title;

/// Tells the hooks of a client which proxy it uses.
pub(super) const PROXY_URL: &str = "CTX_PROXY_URL";

pub(crate) fn run(global: &Global, args: &Run, out: &Out) -> anyhow::Result<ExitCode> {
    let (client, words) = Client::of_command(&args.command);
    let (command, given) = args.command.split_at(words);
    let environment = Environment { args: given.to_vec(), ..Environment::from_process() };
    let (config, home) = (setup::config(global)?, Home::from_env()?);
    let mut flags = args.proxy.serve();
    let server = running(&home)?.filter(|server| !server.needs_token);
    if flags.upstreams.is_empty() {
        // Its own address in the client's configuration is not the client's server.
        let listen = config.section::<ServerConfig>()?.listen;
        let mut own = vec![Proxy::at(&format!("http://{listen}"))];
        own.extend(server.iter().map(|server| Proxy::at(&server.url)));
        let records = home.root.join("setup");
        let mut found = client.upstreams(&records, &environment)?;
        found.extend(client.replaced(&records, &environment)?);
        found.retain(|(_, url)| !own.iter().any(|own| own.is_at(url)));
        let is_served = |(family, url): &(Family, String)| {
            server.as_ref().is_some_and(|server| server.sends_to(family.name(), url))
        };
        if !found.iter().all(is_served) {
            let found = found.into_iter();
            flags.upstreams =
                found.map(|(family, url)| format!("{}={url}", family.name())).collect();
        }
    }
    if let Some(server) = server.filter(|_| flags.upstreams.is_empty() && flags.window.is_none()) {
        let proxy = Proxy::at(&server.url);
        return run_client(command, client, &proxy, &environment, || false, out);
    }
    let log = Log::open(&home)?;
    let config = with_windows(config, client, &environment, out)?;
    let service = Service::new(config, &flags, log.receiver("warning"), log.receiver("note"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(ctx_terminal::failure::runtime_error)?;
    let shutdown = Shutdown::default();
    let bound = runtime.block_on(service.server.clone().bind())?;
    let proxy = Proxy::at(&bound.url());
    let service = runtime.block_on(async { service.open(&bound) })?;
    let served = runtime.spawn(service.serve(bound, shutdown.clone(), None));
    let ended = run_client(command, client, &proxy, &environment, || log.warnings() > 0, out);
    let (interrupted, terminated) = (shutdown.clone(), shutdown.clone());
    shutdown::on_interrupt(move || interrupted.stop());
    shutdown::on_term(move || terminated.stop());
    shutdown.stop();
    let finished = runtime.block_on(served);
    runtime.shutdown_background();
    log.report(out);
    let code = ended?;
    finished?;
    Ok(code)
}

/// Returns the configuration with the windows of the client's models, except for models that it has.
fn with_windows(
    config: Config,
    client: Client,
    environment: &Environment,
    out: &Out,
) -> anyhow::Result<Config> {
    let known: Models = config.section()?;
    let mut models = Vec::new();
    for (id, window) in client.windows(environment)? {
        match window {
            _ if known.find(None, &id).is_some() => {}
            Window::Tokens(window) => models.push(json!({ "id": id, "contextWindow": window })),
            Window::Other(value) => out.warn(format!(
                "the window of {id} in the configuration of {client} is not a number of tokens: \
                 '{value}'"
            )),
        }
    }
    if models.is_empty() {
        return Ok(config);
    }
    Ok(config
        .overlaid(json!({ "models": { "providers": { "ctx-run": { "models": models } } } }))?)
}

/// The exit codes of shells for a command that is not found, or that cannot be executed.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

/// Runs the client with its requests going to the proxy. Returns its exit code. `command` begins with
/// the program; the other arguments are in the environment.
fn run_client(
    command: &[OsString],
    client: Client,
    proxy: &Proxy,
    environment: &Environment,
    has_warnings: impl Fn() -> bool,
    out: &Out,
) -> anyhow::Result<ExitCode> {
    let (program, first) = command.split_first().expect("clap requires a command");
    let launch = client.launch(proxy, environment)?;
    if let Some(folder) = &launch.folder {
        shutdown::removes(folder.path());
    }
    // On Windows a name alone does not find a script of npm.
    let found = program.to_str().and_then(|program| environment.find(program));
    let mut command = Command::new(found.as_deref().unwrap_or(Path::new(program)));
    command
        .args(first)
        .args(&launch.args)
        .envs(launch.variables.iter().map(|(name, value)| (name, value)));
    command.env(PROXY_URL, proxy.url());
    // Ctrl-C reaches the client from the terminal, and the proxy stays until it has ended.
    shutdown::on_interrupt(|| {});
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ok(not_started(Path::new(program), &error, out)),
    };
    let id = child.id();
    // It may have ended.
    shutdown::on_term(move || drop(shutdown::terminate(id)));
    let since = clock::now().0;
    let title = Title::of(proxy.url());
    let status = child.wait()?;
    drop(title);
    let is_question = |arg: &OsString| QUESTIONS.iter().any(|flag| arg == flag);
    let may_be_silent = environment.args.iter().any(is_question) || has_warnings();
    if !may_be_silent && has_passed(proxy.url(), since) == Some(false) {
        out.note(match client {
            Client::Sdk => {
                "no request passed: the program does not read OPENAI_BASE_URL, ANTHROPIC_BASE_URL \
                 or GOOGLE_GEMINI_BASE_URL, or sent none"
                    .to_owned()
            }
            _ => format!(
                "no request passed: {client} sent none, or uses a provider that ctx does not set \
                 (`ctx doctor` says where it sends them)"
            ),
        });
    }
    Ok(ExitCode::from(code(status)))
}

/// Says why a client did not start. Returns the exit code.
fn not_started(program: &Path, cause: &io::Error, out: &Out) -> ExitCode {
    let (code, hint) = match cause.kind() {
        io::ErrorKind::NotFound => {
            (NOT_FOUND, "install it, or give its path: ctx run -- /path/to/client")
        }
        _ => (NOT_EXECUTABLE, "it has to be a program that may be executed: see chmod +x"),
    };
    let error = Error::new(ErrorKind::NotFound, "cannot start the client")
        .with("program", program.display())
        .with("cause", cause)
        .hint(hint);
    out.error(&error.into());
    ExitCode::from(code)
}

/// Flags of clients that send no request.
const QUESTIONS: [&str; 4] = ["--version", "-V", "--help", "-h"];

/// Returns the exit code of a client, in the form of shells if a signal ended it.
fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status).map(|signal| 128 + signal);
    #[cfg(not(unix))]
    let signal = None;
    status.code().or(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// The log of the proxy: the terminal belongs to the client.
struct Log {
    path: PathBuf,
    file: Arc<Mutex<std::fs::File>>,
    warnings: Arc<Mutex<usize>>,
}

impl Log {
    fn open(home: &Home) -> anyhow::Result<Self> {
        let path = home.root.join("proxy").join("run.log");
        ctx_disk::create_private_dir(ctx_disk::parent(&path))?;
        let file = ctx_disk::private().append(true).create(true).open(&path);
        // It is that of the last run.
        let file = file.and_then(|file| file.set_len(0).map(|()| file));
        let file = file.map_err(|e| io_error("cannot open the log", &path, e))?;
        Ok(Self { path, file: Arc::new(Mutex::new(file)), warnings: Arc::default() })
    }

    fn receiver(&self, kind: &'static str) -> super::serve::Receiver {
        let (file, warnings) = (self.file.clone(), self.warnings.clone());
        Box::new(move |line| {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            // Best effort: the log is for people.
            let _ = writeln!(file, "{kind}: {line}");
            if kind == "warning" {
                *warnings.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            }
        })
    }

    fn warnings(&self) -> usize {
        *self.warnings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says where warnings are.
    fn report(&self, out: &Out) {
        let warnings = self.warnings();
        if warnings > 0 {
            let counted = ctx_terminal::format::counted(warnings, "warning");
            out.note(format!("{counted} of the proxy in {}", self.path.display()));
        }
    }
}
