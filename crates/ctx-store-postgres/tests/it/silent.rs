//! A network that carries nothing more.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ctx_store::{Directory, SessionName};
use ctx_store_postgres::{Options, PostgresStore};

use crate::{server, tenant};

/// A relay whose oldest connections, of this number, carry nothing and stay open.
#[derive(Clone, Default)]
struct Relay {
    silent: Arc<AtomicUsize>,
    accepted: Arc<AtomicUsize>,
}

impl Relay {
    /// Starts it, and returns its port.
    fn start(&self, target: u16) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let relay = self.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let number = relay.accepted.fetch_add(1, Ordering::SeqCst);
                let server = TcpStream::connect(("127.0.0.1", target)).unwrap();
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let (one, other) = (relay.clone(), relay.clone());
                std::thread::spawn(move || one.pump(number, from, to));
                std::thread::spawn(move || other.pump(number, server, client));
            }
        });
        port
    }

    fn pump(&self, number: usize, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            if number >= self.silent.load(Ordering::SeqCst)
                && to.write_all(&bytes[..length]).is_err()
            {
                break;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_does_not_answer_is_replaced() {
    let Some(server) = server().await else { return };
    let relay = Relay::default();
    let port = relay.start(server.port());
    let url = format!("postgres://ctx@127.0.0.1:{port}/postgres?sslmode=disable");
    let statement_timeout = Duration::from_millis(500);
    let options = Options { connections: 1, statement_timeout, ..tenant("acme") };
    let store = PostgresStore::open(&url, options).await.unwrap();
    let session = SessionName { agent: "main".into(), key: "agent:main:main".into() };
    store.compare_and_put(&session, None, "{}").await.unwrap();
    relay.silent.store(relay.accepted.load(Ordering::SeqCst), Ordering::SeqCst);
    // A statement that has to be prepared, and another one.
    let calls = async { (store.agents().await, store.get(&session).await) };
    let (agents, entry) =
        tokio::time::timeout(Duration::from_secs(60), calls).await.expect("it waits for ever");
    assert_eq!((agents.unwrap(), entry.unwrap().is_some()), (vec!["main".to_owned()], true));
    assert_eq!(relay.accepted.load(Ordering::SeqCst), 2);
}
