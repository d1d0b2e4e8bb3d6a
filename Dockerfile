# docker build -t phalanx .                               for CPUs
# docker build -t phalanx --build-arg EXTRAS=demo,checkpoint,cuda13 .    for NVIDIA GPUs
# docker run --rm phalanx                                 shows the demo
# docker run --rm --gpus all -v "$PWD:/work" phalanx python train.py
FROM python:3.13-slim
ARG EXTRAS=demo,checkpoint
COPY pyproject.toml README.md LICENSE /src/
COPY phalanx /src/phalanx
COPY examples /src/examples
RUN pip install --no-cache-dir "/src[${EXTRAS}]" && rm -r /src
WORKDIR /work
CMD ["phalanx", "demo"]
