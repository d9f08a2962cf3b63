import socket
import sys

import pytest

from visualizer.server.connections import send_at_once


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not list what a process has open")
@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_connections_to_a_listening_socket_send_at_once(family, address):
    with socket.socket(family) as listening:
        try:
            listening.bind((address, 0))
        except OSError as error:
            pytest.skip(f"this machine has no {address}: {error}")
        listening.listen()
        assert send_at_once() >= 1
        with socket.create_connection(listening.getsockname()[:2]) as client, listening.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            client.sendall(b"as before")
            assert accepted.recv(9) == b"as before"
