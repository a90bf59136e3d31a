//! The proxy with the inspector and the tools of MCP beside it, as one server.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ctx_config::Config;
use ctx_core::{Error, ErrorKind, Tokens};
use ctx_inspector::replay::{ReplayOverrides, ReplaySettings, Replays};
use ctx_inspector::{Inspector, MemorySearch};
use ctx_runtime::SessionSpec;
use ctx_runtime::lifecycle::Bytes;
use ctx_server::Host;
use ctx_server::http::{Bound, Metrics, Server, Shutdown, status_routes};
use ctx_server::proxy::{Family, Proxy, ReplicaStore, ServerConfig, Settings, Upstreams};
use ctx_server::running::stop_route;
use ctx_session::Home;
use ctx_session::key::FileId;
use ctx_store_postgres::StoreConfig;
use ctx_terminal::failure::{misuse, runtime_error};
use ctx_trace::{Trace, TraceLimits};
use tokio::runtime::{Builder, Runtime};

use crate::args::Serve;
use crate::setup;

/// The minimum of `server.maxBodyBytes`.
const LEAST_BODY: u64 = 1_024;

/// How long a request waits for a store that cannot be reached; later ones do not wait.
const STORE_PATIENCE: Duration = Duration::from_secs(2);

/// Receives a line for the user.
pub(crate) type Receiver = Box<dyn Fn(&str) + Send + Sync>;

/// A server before it listens.
pub(crate) struct Service {
    pub(crate) home: Home,
    pub(crate) server: Server,
    pub(crate) upstreams: Upstreams,
    pub(crate) trace: Arc<Trace>,
    settings: Settings,
    agent: FileId,
}

impl Service {
    /// Resolves flags and the configuration.
    pub(crate) fn new(
        config: Config,
        args: &Serve,
        warn: Receiver,
        note: Receiver,
    ) -> anyhow::Result<Self> {
        let host = Host { config: config.for_proxy(), home: Home::from_env()? };
        let mut config: ServerConfig = host.config.section()?;
        if let Some(most) = &args.max_body {
            config.max_body_bytes = body_bytes(most).map_err(misuse)?;
        }
        if let Some(grace) = args.grace {
            config.grace_seconds = grace;
        }
        let upstreams = Upstreams::new(&args.upstreams, &config.upstreams).map_err(misuse)?;
        let window = args.window.as_deref().map(setup::parse_tokens).transpose().map_err(misuse)?;
        let server = server(args, &config)?;
        let agent = args.agent.as_deref().map(str::parse).transpose().map_err(misuse)?;
        let agent: FileId = agent.unwrap_or_else(FileId::main);
        let wanted = SessionSpec {
            engine: args.engine.clone(),
            agent: Some(agent.to_string()),
            window,
            ..SessionSpec::default()
        };
        let resolved = wanted.resolve(&host.config)?;
        resolved.check_engine().map_err(misuse)?;
        if window.is_some() {
            let by_flag: fn(Tokens) -> String =
                |minimum| format!("give --window {minimum} or more");
            resolved.check_window(Some(by_flag)).map_err(misuse)?;
        }
        let folder = host.home.root.join("proxy").join("traces");
        let trace = Arc::new(Trace::at(folder, TraceLimits::default())?);
        let (home, replicas) = (host.home.clone(), replicas(&host.config)?);
        let settings = Settings {
            host,
            config,
            upstreams: upstreams.clone(),
            window,
            engine: args.engine.clone(),
            agent: Some(agent.to_string()),
            replicas,
            warn,
            note,
        };
        Ok(Self { home, server, upstreams, trace, settings, agent })
    }

    /// Returns each API with the URL of its upstream, without credentials and query.
    pub(crate) fn urls(&self) -> [(&'static str, String); 4] {
        upstream_urls(&self.upstreams)
    }

    /// Opens conversations, records, memory and sessions for a server at an address.
    pub(crate) fn open(self, bound: &Bound) -> anyhow::Result<OpenService> {
        self.upstreams.check_not(bound.address())?;
        let tools = ctx_mcp::Server::new(ctx_mcp::Setup {
            host: self.settings.host.clone(),
            agent: self.agent.clone(),
            session: None,
            writes: ctx_mcp::Writes::WithToken,
            others: None,
        });
        let (config, home) = (self.settings.host.config.clone(), self.home);
        let fit = ReplayOverrides { window: self.settings.window, ..ReplayOverrides::default() };
        let has_token = self.server.token.is_some();
        let proxy = Proxy::new(self.settings, self.trace, Metrics::default())?;
        proxy.announce(&bound.url());
        let memory = MemorySearch::new(config.clone(), home.clone());
        let stored = Replays::new(ReplaySettings { config, home, fit }, Vec::new(), true);
        Ok(OpenService { proxy, memory, stored, tools, has_token })
    }
}

/// A server whose files are open.
pub(crate) struct OpenService {
    proxy: Arc<Proxy>,
    memory: MemorySearch,
    stored: Replays,
    tools: ctx_mcp::Server,
    has_token: bool,
}

impl OpenService {
    /// Serves requests until `shutdown`, then finishes running answers, and waits until records and
    /// conversations are on disk. A request with `stop_key` is a shutdown too.
    pub(crate) async fn serve(self, bound: Bound, shutdown: Shutdown, stop_key: Option<String>) {
        let inspector = Inspector::new(self.stored, self.memory, shutdown.clone())
            .with_proxy(self.proxy.clone())
            .with_token(self.has_token);
        let routes = status_routes(self.proxy.metrics()).merge(ctx_mcp::routes(self.tools));
        let mut routes = routes.merge(self.proxy.router()).merge(inspector.router());
        if let Some(key) = stop_key {
            routes = routes.merge(stop_route(key, shutdown.clone()));
        }
        bound.serve(routes, shutdown).await;
        self.proxy.settle();
    }
}

/// Opens the store that replicas share, if one is configured, in a runtime of its own.
fn replicas(config: &Config) -> anyhow::Result<Option<ReplicaStore>> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let section = StoreConfig::of(config)?;
    if section.url.is_none() {
        return Ok(None);
    }
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(runtime_error)?;
    let runtime = RUNTIME.get_or_init(|| runtime);
    let store = runtime.block_on(section.open_within(STORE_PATIENCE))?;
    Ok(Some(ReplicaStore::new(Arc::new(store), runtime.handle().clone())))
}

fn server(args: &Serve, config: &ServerConfig) -> anyhow::Result<Server> {
    let listen = args.listen.as_ref().unwrap_or(&config.listen);
    let listen = listen.parse().map_err(|_| {
        misuse(
            Error::new(ErrorKind::InvalidInput, format!("invalid listen address '{listen}'"))
                .hint("give an address and a port, such as 127.0.0.1:8787"),
        )
    })?;
    let mut server = Server::new(listen);
    server.token = setup::token(args.token.as_deref())?;
    server.hosts.clone_from(&config.hosts);
    server.origins.clone_from(&config.origins);
    server.grace = Duration::from_secs(config.grace_seconds.into());
    Ok(server)
}

/// Returns each API with its URL, without credentials and query.
pub(super) fn upstream_urls(upstreams: &Upstreams) -> [(&'static str, String); 4] {
    Family::ALL.map(|family| {
        let url = upstreams.base(family);
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let host = url.host_str().unwrap_or_default();
        let path = url.path().trim_end_matches('/');
        (family.name(), format!("{}://{host}{port}{path}", url.scheme()))
    })
}

/// Parses the maximum size of a request body.
fn body_bytes(text: &str) -> Result<u64, Error> {
    let Bytes(bytes) = text.parse()?;
    match bytes {
        LEAST_BODY.. => Ok(bytes),
        _ => Err(Error::new(ErrorKind::InvalidInput, format!("invalid body size '{text}'"))
            .with("least", LEAST_BODY)
            .hint("use --max-body with a size such as 64M")),
    }
}
