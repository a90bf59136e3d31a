//! A PostgreSQL server for tests: a new cluster on loopback, which ends with the test.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::skipped;

/// The folder with the programs of a server, if it is not found by itself.
const PROGRAMS: &str = "CTX_POSTGRES_BIN";

/// How long the server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// The user that runs the server if the tests run as root, which it refuses.
const USER: u32 = 65_534;

/// A running server with one database, `postgres`, whose owner is `postgres`. No password is needed.
#[derive(Debug)]
pub struct PostgresServer {
    programs: PathBuf,
    folder: TempDir,
    port: u16,
    settings: &'static [&'static str],
    process: Child,
}

/// The settings of a server for tests: small, and without syncs.
const QUICK: &[&str] = &["fsync=off", "shared_buffers=16MB"];

/// The settings of a server for benchmarks, which syncs what it commits.
const DURABLE: &[&str] = &["shared_buffers=256MB", "max_wal_size=4GB", "max_connections=200"];

impl PostgresServer {
    /// Starts a server; `None` if none is installed, and the test is [`skipped`].
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::with(QUICK)
    }

    /// Starts a server that syncs what it commits, for benchmarks; `None` if none is installed.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[must_use]
    pub fn durable() -> Option<Self> {
        Self::with(DURABLE)
    }

    fn with(settings: &'static [&'static str]) -> Option<Self> {
        let Some(programs) = programs() else {
            skipped(&format!("PostgreSQL is not installed ({PROGRAMS} may name its folder)"));
            return None;
        };
        let folder = own_folder();
        let data = folder.path().join("data");
        let made = program(&programs, "initdb")
            .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync", "-D"])
            .arg(&data)
            .stdout(Stdio::null())
            .output()
            .expect("initdb can be run");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        Some(Self::run(programs, folder, settings))
    }

    /// Starts a standby that has each commit before it is answered.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[must_use]
    pub fn standby(&self) -> Self {
        let folder = own_folder();
        let copied = self
            .program("pg_basebackup")
            .args(["-R", "--checkpoint=fast", "-d", &self.url("postgres"), "-D"])
            .arg(folder.path().join("data"))
            .output()
            .expect("pg_basebackup can be run");
        assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
        let standby = Self::run(self.programs.clone(), folder, self.settings);
        self.sql("alter system set synchronous_standby_names = '*'");
        self.sql("select pg_reload_conf()");
        let until = Instant::now() + PATIENCE;
        while self.sql("select count(*) from pg_stat_replication where sync_state = 'sync'") != "1"
        {
            assert!(Instant::now() < until, "the standby does not follow");
        }
        standby
    }

    fn run(programs: PathBuf, folder: TempDir, settings: &'static [&'static str]) -> Self {
        let port = free_port();
        let process = run(&programs, folder.path(), port, settings);
        let mut server = Self { programs, folder, port, settings, process };
        server.wait();
        server
    }

    /// Returns the folder that the server's user may write.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns a command of the server, such as `pgbench`, run by the server's user.
    #[must_use]
    pub fn program(&self, name: &str) -> Command {
        program(&self.programs, name)
    }

    /// Returns the URL of its database, for a role.
    #[must_use]
    pub fn url(&self, role: &str) -> String {
        format!("postgres://{role}@127.0.0.1:{}/postgres?sslmode=disable", self.port)
    }

    /// Runs SQL as its owner.
    ///
    /// # Panics
    ///
    /// If that fails.
    pub fn sql(&self, sql: &str) -> String {
        let done = self
            .program("psql")
            .args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d"])
            .arg(self.url("postgres"))
            .args(["-c", sql])
            .output()
            .expect("psql can be run");
        assert!(done.status.success(), "{sql}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// Ends the server as a crash does.
    pub fn crash(&mut self) {
        self.control(&["stop", "-m", "immediate"]);
        let _ = self.process.wait();
    }

    /// Starts the server again, with the same data.
    pub fn restart(&mut self) {
        self.process = run(&self.programs, self.folder.path(), self.port, self.settings);
        self.wait();
    }

    fn control(&self, args: &[&str]) {
        let data = self.folder.path().join("data");
        let ended = self
            .program("pg_ctl")
            .args(args)
            .arg("-D")
            .arg(data)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        drop(ended);
    }

    /// Waits until it accepts connections.
    fn wait(&mut self) {
        let until = Instant::now() + PATIENCE;
        loop {
            let ready = self
                .program("pg_isready")
                .args(["-q", "-t", "1", "-h", "127.0.0.1", "-p", &self.port.to_string()])
                .status();
            if ready.is_ok_and(|status| status.success()) {
                return;
            }
            let ended = self.process.try_wait().expect("it was started");
            let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(ended.is_none() && Instant::now() < until, "the server does not start: {log}");
        }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.control(&["stop", "-m", "immediate"]);
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns a folder of the user that runs the server.
fn own_folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    #[cfg(unix)]
    if is_root() {
        std::os::unix::fs::chown(folder.path(), Some(USER), Some(USER)).expect("root may");
    }
    folder
}

fn run(programs: &Path, folder: &Path, port: u16, settings: &[&str]) -> Child {
    let log = File::options().create(true).append(true).open(folder.join("log"));
    program(programs, "postgres")
        .arg("-D")
        .arg(folder.join("data"))
        .args(["-p", &port.to_string(), "-h", "127.0.0.1", "-k"])
        .arg(folder)
        .args(["-c", "log_min_messages=fatal"])
        .args(settings.iter().flat_map(|setting| ["-c", setting]))
        .stdout(Stdio::null())
        .stderr(log.expect("the folder is writable"))
        .spawn()
        .expect("the server can be run")
}

/// Returns the folder of the newest server that is installed.
fn programs() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(PROGRAMS) {
        return Some(folder.into());
    }
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = installed.map(|entry| entry.path().join("bin")).collect();
    folders.sort();
    folders.reverse();
    folders.extend(std::env::split_paths(&std::env::var_os("PATH")?));
    let needed = ["initdb", "pg_ctl", "pg_isready", "postgres", "psql"];
    folders.into_iter().find(|folder| needed.iter().all(|name| folder.join(name).exists()))
}

/// Returns a program of the server, which refuses to run as root.
fn program(programs: &Path, name: &str) -> Command {
    let path = programs.join(name);
    let mut command = Command::new(path);
    #[cfg(unix)]
    if is_root() {
        use std::os::unix::process::CommandExt;
        command.uid(USER).gid(USER);
    }
    command.current_dir("/");
    command
}

#[cfg(unix)]
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}
