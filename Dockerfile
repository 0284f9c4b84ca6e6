# The dashboard in a container. Not built by the project's tests, which have no network: read it before you rely on it.
# docker build --tag dpgrams . ; how to run it behind a reverse proxy: deploy/compose.yaml
FROM python:3.11-slim

# A user of its own, and folders that are its own: the ledger, and on another volume its high-water mark.
RUN useradd --create-home dpgrams \
    && install --directory --owner=dpgrams /var/lib/dpgrams /var/lib/dpgrams-mark
WORKDIR /srv/dpgrams

COPY requirements.txt requirements-dev.txt ./
RUN pip install --no-cache-dir --require-hashes --only-binary :all: --requirement requirements.txt

# The wheel needs its builder only while it is built: the locked one, from the locked file.
COPY pyproject.toml README.md LICENSE app.py ./
COPY .streamlit .streamlit
COPY pages pages
COPY assets assets
COPY dpgrams_core dpgrams_core
RUN python -m venv --system-site-packages /tmp/build \
    && /tmp/build/bin/pip install --no-cache-dir --require-hashes --only-binary :all: --requirement requirements-dev.txt \
    && /tmp/build/bin/pip wheel --no-deps --no-build-isolation --no-index --wheel-dir /tmp/wheels . \
    && pip install --no-cache-dir --no-deps --no-index /tmp/wheels/*.whl \
    && rm -rf /tmp/build /tmp/wheels /srv/dpgrams/*

USER dpgrams
ENV DPGRAMS_LEDGER=/var/lib/dpgrams/ledger.sqlite3 DPGRAMS_LEDGER_MARK=/var/lib/dpgrams-mark
EXPOSE 8501
# A probe has to send a name that the server answers to; 503 says that the ledger cannot be used, and why.
HEALTHCHECK CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://localhost:8501/_stcore/health').close()"]
ENTRYPOINT ["dpgrams", "app", "--server.address", "0.0.0.0"]
# Which names it answers to: each host again, localhost for the probe.
CMD ["--server.allowedHosts", "localhost", "--server.allowedHosts", "dash.example"]
