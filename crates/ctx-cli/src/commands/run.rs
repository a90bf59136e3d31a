//! `ctx run`.

mod title;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};

use ctx_clients::{Client, Environment, Proxy};
use ctx_core::{Error, ErrorKind};
use ctx_disk::io_error;
use ctx_server::http::Shutdown;
use ctx_server::proxy::ServerConfig;
use ctx_server::running::running;
use ctx_session::Home;
use ctx_terminal::out::Out;
use ctx_terminal::shutdown;

use super::serve::Service;
use crate::args::{Global, Run};
use crate::setup;
use title::Title;

/// Tells the hooks of a client which proxy it uses.
pub(super) const PROXY_URL: &str = "CTX_PROXY_URL";

pub(crate) fn run(global: &Global, args: &Run, out: &Out) -> anyhow::Result<ExitCode> {
    let (program, given) = args.command.split_first().expect("clap requires a command");
    let environment = Environment { args: given.to_vec(), ..Environment::from_process() };
    let client = Client::of_program(Path::new(program)).unwrap_or(Client::Sdk);
    let home = Home::from_env()?;
    let mut flags = args.proxy.serve();
    let server = running(&home)?.filter(|server| !server.needs_token);
    if flags.upstreams.is_empty() {
        // Its own address in the client's configuration is not the client's server.
        let listen = setup::config(global)?.section::<ServerConfig>()?.listen;
        let mut own = vec![Proxy::at(&format!("http://{listen}"))];
        own.extend(server.iter().map(|server| Proxy::at(&server.url)));
        let records = home.root.join("setup");
        let mut found = client.upstreams(&records, &environment)?;
        if server.is_none() {
            found.extend(client.replaced(&records, &environment)?);
        }
        let found = found.into_iter().filter(|(_, url)| !own.iter().any(|own| own.is_at(url)));
        flags.upstreams = found.map(|(family, url)| format!("{}={url}", family.name())).collect();
    }
    if let Some(server) = server.filter(|_| flags.upstreams.is_empty() && flags.window.is_none()) {
        return run_client(program, client, &Proxy::at(&server.url), &environment);
    }
    let log = Log::open(&home)?;
    let service = Service::new(global, &flags, log.receiver("warning"), log.receiver("note"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(ctx_terminal::failure::runtime_error)?;
    let shutdown = Shutdown::default();
    let bound = runtime.block_on(service.server.clone().bind())?;
    let proxy = Proxy::at(&bound.url());
    let service = runtime.block_on(async { service.open(&bound) })?;
    let served = runtime.spawn(service.serve(bound, shutdown.clone(), None));
    let ended = run_client(program, client, &proxy, &environment);
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

/// Runs the client with its requests going to the proxy. Returns its exit code.
fn run_client(
    program: &OsStr,
    client: Client,
    proxy: &Proxy,
    environment: &Environment,
) -> anyhow::Result<ExitCode> {
    let launch = client.launch(proxy, environment)?;
    if let Some(folder) = &launch.folder {
        shutdown::removes(folder.path());
    }
    // On Windows a name alone does not find a script of npm.
    let found = program.to_str().and_then(|program| environment.find(program));
    let mut command = Command::new(found.as_deref().unwrap_or(Path::new(program)));
    command.args(&launch.args).envs(launch.variables.iter().map(|(name, value)| (name, value)));
    command.env(PROXY_URL, proxy.url());
    // Ctrl-C reaches the client from the terminal, and the proxy stays until it has ended.
    shutdown::on_interrupt(|| {});
    let mut client = command.spawn().map_err(|error| {
        Error::new(ErrorKind::NotFound, "cannot start the client")
            .with("program", Path::new(program).display())
            .with("cause", &error)
            .hint("install it, or give its path: ctx run -- /path/to/client")
            .source(error)
    })?;
    let id = client.id();
    // It may have ended.
    shutdown::on_term(move || drop(shutdown::terminate(id)));
    let _title = Title::of(proxy.url());
    Ok(ExitCode::from(code(client.wait()?)))
}

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

    /// Says where warnings are.
    fn report(&self, out: &Out) {
        let warnings = *self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings > 0 {
            let counted = ctx_terminal::format::counted(warnings, "warning");
            out.note(format!("{counted} of the proxy in {}", self.path.display()));
        }
    }
}
