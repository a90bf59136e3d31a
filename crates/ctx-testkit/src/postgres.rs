//! A PostgreSQL server for tests: a new cluster on loopback, which ends with the test.

use std::fs::File;
use std::io::Write;
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
    folder: Folder,
    port: u16,
    settings: &'static [&'static str],
    process: Child,
}

/// The settings of a server for tests: small, and without syncs.
const QUICK: &[&str] = &["fsync=off", "shared_buffers=16MB"];

/// The settings of a server for benchmarks, which syncs what it commits.
const DURABLE: &[&str] = &["shared_buffers=256MB", "max_wal_size=4GB", "max_connections=200"];

/// The settings of a server whose disk can be filled: little is kept that is not needed, so that it
/// notices at once. A standby that was away for some seconds finds what it lacks.
const SMALL: &[&str] = &[
    "fsync=off",
    "shared_buffers=16MB",
    "max_wal_size=32MB",
    "min_wal_size=2MB",
    "wal_keep_size=32MB",
    "wal_recycle=off",
];

/// The size of a disk that can be filled.
const DISK_SIZE: &str = "256m";

impl PostgresServer {
    /// Starts a server; `None` if none is installed, and the test is [`skipped`].
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::with(QUICK, false)
    }

    /// Starts a server with a disk of its own in memory, which [`fill_disk`](Self::fill_disk) fills;
    /// without one, if that is not permitted. `None` if no server is installed, and the test is
    /// [`skipped`].
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[must_use]
    pub fn on_small_disk() -> Option<Self> {
        Self::with(SMALL, true)
    }

    /// Starts a server that syncs what it commits, for benchmarks; `None` if none is installed.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[must_use]
    pub fn durable() -> Option<Self> {
        Self::with(DURABLE, false)
    }

    fn with(settings: &'static [&'static str], has_disk: bool) -> Option<Self> {
        let Some(programs) = programs() else {
            skipped(&format!("PostgreSQL is not installed ({PROGRAMS} may name its folder)"));
            return None;
        };
        let folder = Folder::new(has_disk);
        let segments: &[&str] = if has_disk { &["--wal-segsize=1"] } else { &[] };
        let made = program(&programs, "initdb")
            .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync"])
            .args(segments)
            .arg("-D")
            .arg(folder.data())
            .stdout(Stdio::null())
            .output()
            .expect("initdb can be run");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        Some(Self::run(programs, folder, settings))
    }

    /// Starts a standby of this server, which it reaches at `port` of loopback.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[must_use]
    pub fn standby(&self, port: u16) -> Self {
        let folder = Folder::new(self.has_disk());
        let copied = self
            .program("pg_basebackup")
            .args(["--checkpoint=fast", "--no-sync", "--write-recovery-conf", "--no-slot", "-d"])
            .arg(format!("host=127.0.0.1 port={port} user=postgres"))
            .arg("-D")
            .arg(folder.data())
            .output()
            .expect("pg_basebackup can be run");
        assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
        Self::run(self.programs.clone(), folder, self.settings)
    }

    /// Starts a standby that has each commit before it is answered.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[must_use]
    pub fn synchronous_standby(&self) -> Self {
        let standby = self.standby(self.port);
        self.sql("alter system set synchronous_standby_names = '*'");
        self.sql("select pg_reload_conf()");
        let until = Instant::now() + PATIENCE;
        while self.sql("select count(*) from pg_stat_replication where sync_state = 'sync'") != "1"
        {
            assert!(Instant::now() < until, "the standby does not follow");
        }
        standby
    }

    fn run(programs: PathBuf, folder: Folder, settings: &'static [&'static str]) -> Self {
        let port = free_port();
        let process = run(&programs, &folder, port, settings);
        let mut server = Self { programs, folder, port, settings, process };
        server.wait();
        server
    }

    /// Returns its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the folder that the server's user may write.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path.path()
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
        self.try_sql(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Runs SQL as its owner.
    ///
    /// # Errors
    ///
    /// What the server says, if that fails.
    ///
    /// # Panics
    ///
    /// If `psql` cannot be run.
    pub fn try_sql(&self, sql: &str) -> Result<String, String> {
        let done = self
            .program("psql")
            .args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d"])
            .arg(self.url("postgres"))
            .args(["-c", sql])
            .output()
            .expect("psql can be run");
        match done.status.success() {
            true => Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned()),
            false => Err(String::from_utf8_lossy(&done.stderr).trim().to_owned()),
        }
    }

    /// Whether it has a disk of its own.
    #[must_use]
    pub fn has_disk(&self) -> bool {
        self.folder.disk.is_some()
    }

    /// Fills its disk, up to the last byte.
    ///
    /// # Panics
    ///
    /// If it has no disk of its own.
    pub fn fill_disk(&self) {
        self.folder.disk.as_ref().expect("it has a disk of its own").fill();
    }

    /// Frees what [`fill_disk`](Self::fill_disk) filled, and waits until the server accepts
    /// connections. If it ended, it is started again.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn free_disk(&mut self) {
        self.folder.disk.as_ref().expect("it has a disk of its own").free();
        let until = Instant::now() + PATIENCE;
        while !self.is_ready() {
            if self.process.try_wait().expect("it was started").is_some() {
                self.process = run(&self.programs, &self.folder, self.port, self.settings);
            }
            assert!(Instant::now() < until, "the server does not start: {}", self.log());
        }
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
        self.process = run(&self.programs, &self.folder, self.port, self.settings);
        self.wait();
    }

    fn control(&self, args: &[&str]) {
        let ended = self
            .program("pg_ctl")
            .args(args)
            .arg("-D")
            .arg(self.folder.data())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        drop(ended);
    }

    /// Waits until it accepts connections.
    fn wait(&mut self) {
        let until = Instant::now() + PATIENCE;
        while !self.is_ready() {
            let ended = self.process.try_wait().expect("it was started");
            let is_late = ended.is_some() || Instant::now() >= until;
            assert!(!is_late, "the server does not start: {}", self.log());
        }
    }

    fn is_ready(&self) -> bool {
        let ready = self
            .program("pg_isready")
            .args(["-q", "-t", "1", "-h", "127.0.0.1", "-p", &self.port.to_string()])
            .status();
        ready.is_ok_and(|status| status.success())
    }

    /// Returns what the server has logged.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder().join("log")).unwrap_or_default()
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.control(&["stop", "-m", "immediate"]);
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A folder of the user that runs the server.
#[derive(Debug)]
struct Folder {
    // Unmounted before the folder is deleted.
    disk: Option<Disk>,
    path: TempDir,
}

impl Folder {
    fn new(has_disk: bool) -> Self {
        let path = tempfile::tempdir().expect("a temporary folder");
        #[cfg(unix)]
        if is_root() {
            std::os::unix::fs::chown(path.path(), Some(USER), Some(USER)).expect("root may");
        }
        let disk = has_disk.then(|| Disk::mount(path.path().join("disk"))).flatten();
        Self { disk, path }
    }

    fn data(&self) -> PathBuf {
        let folder = self.disk.as_ref().map_or(self.path.path(), |disk| &disk.0);
        folder.join("data")
    }
}

/// A disk in memory, mounted on a folder.
#[derive(Debug)]
struct Disk(PathBuf);

impl Disk {
    /// Mounts one; `None` if that is not permitted.
    fn mount(folder: PathBuf) -> Option<Self> {
        std::fs::create_dir(&folder).expect("the folder is writable");
        let options = format!("size={DISK_SIZE},mode=700,uid={USER},gid={USER}");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "ctx-test"]).arg(&folder);
        let mounted = mount.stdout(Stdio::null()).stderr(Stdio::null()).status();
        mounted.is_ok_and(|status| status.success()).then_some(Self(folder))
    }

    /// Beside the data, so that a standby does not get it.
    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    fn fill(&self) {
        let mut file = File::create(self.filler()).expect("the disk is writable");
        let block = vec![0; 1 << 16];
        for length in [block.len(), 4096, 1] {
            while file.write_all(&block[..length]).is_ok() {}
        }
    }

    fn free(&self) {
        std::fs::remove_file(self.filler()).expect("it was filled");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A process of the server that has not ended yet does not keep the disk mounted.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

fn run(programs: &Path, folder: &Folder, port: u16, settings: &[&str]) -> Child {
    let path = folder.path.path();
    let log = File::options().create(true).append(true).open(path.join("log"));
    program(programs, "postgres")
        .arg("-D")
        .arg(folder.data())
        .args(["-p", &port.to_string(), "-h", "127.0.0.1", "-k"])
        .arg(path)
        .args(["-c", "log_min_messages=fatal"])
        .args(settings.iter().flat_map(|setting| ["-c", setting]))
        .stdout(Stdio::null())
        .stderr(log.expect("the folder is writable"))
        .spawn()
        .expect("the server can be run")
}

/// Returns the folder of the newest server that is installed.
fn programs() -> Option<PathBuf> {
    let is_complete = |folder: &PathBuf| {
        let needed = ["initdb", "pg_ctl", "pg_isready", "postgres", "psql"];
        needed.iter().all(|name| folder.join(name).exists())
    };
    if let Some(folder) = std::env::var_os(PROGRAMS) {
        return Some(folder.into()).filter(is_complete);
    }
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = installed.map(|entry| entry.path().join("bin")).collect();
    folders.sort();
    folders.reverse();
    folders.extend(std::env::split_paths(&std::env::var_os("PATH")?));
    folders.into_iter().find(is_complete)
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
