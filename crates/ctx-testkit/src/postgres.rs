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
    process: Child,
}

impl PostgresServer {
    /// Starts a server; `None` if none is installed, and the test is [`skipped`].
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[must_use]
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            skipped(&format!("PostgreSQL is not installed ({PROGRAMS} may name its folder)"));
            return None;
        };
        let mut make = program(&programs, "initdb");
        make.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync"]);
        Some(Self::on(programs, make))
    }

    /// Starts a standby of this server, which it reaches at `port` of loopback.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[must_use]
    pub fn standby(&self, port: u16) -> Self {
        let mut copy = program(&self.programs, "pg_basebackup");
        copy.args(["--checkpoint=fast", "--no-sync", "--write-recovery-conf", "--no-slot", "-d"])
            .arg(format!("host=127.0.0.1 port={port} user=postgres"));
        Self::on(self.programs.clone(), copy)
    }

    /// Starts a server on the data that a command makes.
    fn on(programs: PathBuf, mut make: Command) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        #[cfg(unix)]
        if is_root() {
            std::os::unix::fs::chown(folder.path(), Some(USER), Some(USER)).expect("root may");
        }
        make.arg("-D").arg(folder.path().join("data")).stdout(Stdio::null());
        let made = make.output().expect("the programs of the server can be run");
        assert!(made.status.success(), "{make:?}: {}", String::from_utf8_lossy(&made.stderr));
        let port = free_port();
        let process = run(&programs, folder.path(), port);
        let mut server = Self { programs, folder, port, process };
        server.wait();
        server
    }

    /// Returns its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
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
        let done = program(&self.programs, "psql")
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

    /// Kills the server's first process; the others end when they find that out.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Makes a standby a primary.
    pub fn promote(&self) {
        self.control(&["promote", "-w"]);
    }

    /// Starts the server again, with the same data.
    pub fn restart(&mut self) {
        self.process = run(&self.programs, self.folder.path(), self.port);
        self.wait();
    }

    fn control(&self, args: &[&str]) {
        let data = self.folder.path().join("data");
        let ended = program(&self.programs, "pg_ctl")
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
            let ready = program(&self.programs, "pg_isready")
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
        self.kill();
    }
}

fn run(programs: &Path, folder: &Path, port: u16) -> Child {
    let log = File::options().create(true).append(true).open(folder.join("log"));
    program(programs, "postgres")
        .arg("-D")
        .arg(folder.join("data"))
        .args(["-p", &port.to_string(), "-h", "127.0.0.1", "-k"])
        .arg(folder)
        .args(["-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "log_min_messages=fatal"])
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
    let needed = ["initdb", "pg_basebackup", "pg_ctl", "pg_isready", "postgres", "psql"];
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
