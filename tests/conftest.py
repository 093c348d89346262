"""What tests of several rooms need."""

import os

import fsspec
import pytest


@pytest.fixture
def bucket():
    """A real S3 server on loopback: a filesystem on it, and the environment with which other processes reach it."""
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    store = fsspec.filesystem(
        "s3", key="testing", secret="testing", endpoint_url=endpoint, skip_instance_cache=True, use_listings_cache=False
    )
    yield (
        store,
        {
            **os.environ,
            "FSSPEC_S3_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
            "NO_PROXY": "127.0.0.1",
        },
    )
    server.stop()
