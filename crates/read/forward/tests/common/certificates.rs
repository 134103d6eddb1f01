//! Certificates made for one test: good ones, and each kind of bad.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::ServerConfig;

/// A flaw of a server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    None,
    Expired,
    NotYetValid,
    OtherName,
    OtherAuthority,
}

/// An authority that a sender trusts, and another.
pub struct Authority {
    pem: String,
    trusted: Issuer<'static, KeyPair>,
    other: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new() -> Authority {
        let (pem, trusted) = authority();
        Authority {
            pem,
            trusted,
            other: authority().1,
        }
    }

    /// The certificate of the authority, for `tls_ca`.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// TLS of a server at 127.0.0.1 whose certificate has this flaw.
    pub fn server(&self, flaw: Flaw) -> Arc<ServerConfig> {
        let name = match flaw {
            Flaw::OtherName => "broker.example",
            _ => "127.0.0.1",
        };
        let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
        match flaw {
            Flaw::Expired => params.not_after = rcgen::date_time_ymd(2020, 1, 1),
            Flaw::NotYetValid => params.not_before = rcgen::date_time_ymd(2999, 1, 1),
            _ => {}
        }
        let issuer = match flaw {
            Flaw::OtherAuthority => &self.other,
            _ => &self.trusted,
        };
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, issuer).expect("a certificate");
        let secret = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], secret);
        Arc::new(config.expect("a certificate and its key"))
    }
}

fn authority() -> (String, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    (certificate.pem(), Issuer::new(params, key))
}
